"""Latency that a roofline predicts for the paper's phone, beside the latency that the paper measured there."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from smartmem_mlir import api
from smartmem_mlir.bench.agreement import median_ratio, median_relative_error, spearman
from smartmem_mlir.bench.roofline import Memory, Prediction, predict
from smartmem_mlir.bench.tables import table
from smartmem_mlir.errors import CompilerError, OptionError
from smartmem_mlir.iree.flow.work import ModelWork, read_work
from smartmem_mlir.targets import load_target
from smartmem_mlir.targets.description import Roofline

LAUNCHES_NS = (0.0, 10_000.0, 30_000.0)
"""Launch times that the agreement is computed for, because the paper gives none."""


class Variant(BaseModel):
    """One model as it was compiled, and what is predicted; times in milliseconds.

    Args:
        error: Why there is nothing else.
        kernels: Launches of one inference, copies and fills outside kernels included.
        operations: Multiply-adds and other arithmetic.
        least_bytes: What kernels and copies read and write, each element once.
        buffer_bytes: What threads of our shaders ask of buffers.
        image_bytes: What they ask of images.
        predicted_ms: By the assumption about memory.
        share: Of the time with images, by what limits it.
        launch_free_ms: The prediction less the launches, by the assumption.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    error: str | None = None
    kernels: int = 0
    operations: int = 0
    least_bytes: int = 0
    buffer_bytes: int = 0
    image_bytes: int = 0
    predicted_ms: dict[str, float] = {}
    share: dict[str, float] = {}
    launch_free_ms: dict[str, float] = {}


def roofline_of(target_name: str) -> Roofline:
    """The roofline of a target.

    Raises:
        OptionError: It has none.
    """
    target = load_target(target_name)
    if target.vulkan is None or target.vulkan.roofline is None:
        raise OptionError(
            f"target '{target_name}' has no roofline", hint="give 'vulkan.roofline' in a target description"
        )
    return target.vulkan.roofline


def compile_work(model: Path, target: str, *, baseline: bool) -> ModelWork:
    """The kernels of a model in f16 with images wherever possible: compiled as far as IREE's flow IR."""
    storage: dict[str, Any] = {} if baseline else {"storage": "image"}
    text = api.emit(model, "flow", target=target, dtype="f16", baseline=baseline, **storage)
    with tempfile.TemporaryDirectory() as folder:
        flow = Path(folder) / "flow.mlir"
        flow.write_text(text)
        return read_work(flow)


def predict_variant(model: Path, target: str, *, baseline: bool) -> Variant:
    """What is predicted for a model; where it does not compile, why."""
    device = roofline_of(target)
    try:
        work = compile_work(model, target, baseline=baseline)
    except CompilerError as error:
        return Variant(error=error.what)
    memories: tuple[Memory, ...] = ("once",) if baseline else ("images", "buffers", "once")
    found = {memory: predict(work, device, memory) for memory in memories}
    launches = sum(kernel.calls for kernel in work.kernels) + work.copies
    launch_ms = launches * device.kernel_launch_ns / 1e6
    return Variant(
        kernels=launches,
        operations=sum(kernel.calls * sum(kernel.operations.values()) for kernel in work.kernels),
        least_bytes=sum(kernel.calls * kernel.least_bytes for kernel in work.kernels) + work.copy_bytes,
        buffer_bytes=sum(kernel.calls * (kernel.issued_buffer_bytes or 0) for kernel in work.kernels),
        image_bytes=sum(kernel.calls * kernel.issued_image_bytes for kernel in work.kernels),
        predicted_ms={memory: round(prediction.ms, 3) for memory, prediction in found.items()},
        share=_rounded(found[memories[0]]),
        launch_free_ms={memory: round(prediction.ms - launch_ms, 3) for memory, prediction in found.items()},
    )


def agreement(rows: Mapping[str, Mapping[str, Variant]], paper_ms: Mapping[str, float]) -> list[dict[str, Any]]:
    """How each prediction, and what needs none, ranks the models and how far it is from the paper's latencies.

    Args:
        rows: Variants by model.
        paper_ms: The paper's latency by model.
    """
    found: list[dict[str, Any]] = []

    def add(what: str, values: Mapping[str, float], *, is_time: bool = True) -> None:
        names = sorted(values)
        ours, theirs = [values[name] for name in names], [paper_ms[name] for name in names]
        ratio = median_ratio(ours, theirs)
        scaled = [value * (ratio or 1.0) for value in ours]
        found.append(
            {
                "what": what,
                "models": len(names),
                "spearman": spearman(ours, theirs),
                "median_relative_error": median_relative_error(ours, theirs) if is_time else None,
                "median_measured_over_predicted": ratio if is_time else None,
                "median_relative_error_scaled": median_relative_error(scaled, theirs),
            }
        )

    def ours_of(memory: str, launch_ns: float) -> dict[str, float]:
        return {
            name: row["smartmem"].launch_free_ms[memory] + row["smartmem"].kernels * launch_ns / 1e6
            for name, row in rows.items()
            if memory in row["smartmem"].launch_free_ms
        }

    for memory in ("images", "buffers", "once"):
        for launch_ns in LAUNCHES_NS:
            add(f"ours, {memory}, {launch_ns / 1000:g} us a launch", ours_of(memory, launch_ns))
    plain = {name: row["iree"].predicted_ms["once"] for name, row in rows.items() if row["iree"].predicted_ms}
    add("plain IREE, once", plain)
    work = {name: float(row["smartmem"].operations) for name, row in rows.items() if row["smartmem"].operations}
    add("arithmetic alone", work, is_time=False)
    return found


def markdown(rows: Mapping[str, Mapping[str, Variant]], paper_ms: Mapping[str, float], agreed: list[Any]) -> str:
    """All tables."""
    models, limits = [], []
    for name, row in rows.items():
        ours, plain = row["smartmem"], row["iree"]
        cells = [_ms(ours, memory) for memory in ("images", "buffers", "once")]
        factor = f"{paper_ms[name] / ours.predicted_ms['images']:.1f}" if ours.predicted_ms else ""
        models.append([name, f"{paper_ms[name]:g}", *cells, _ms(plain, "once"), factor])
        if not ours.error:
            share = [f"{100 * ours.share.get(limit, 0):.0f}" for limit in _LIMITS]
            sizes = (ours.operations / 1e9, ours.image_bytes / 1e9, ours.buffer_bytes / 1e9, ours.least_bytes / 1e9)
            kernels = [str(ours.kernels), str(plain.kernels) if not plain.error else ""]
            limits.append([name, *kernels, *(f"{size:.2f}" for size in sizes), *share])
    failed = [
        f"- {name}, {variant}: {row[variant].error}"
        for name, row in rows.items()
        for variant in row
        if row[variant].error
    ]
    return "\n\n".join(
        [
            "# The paper's phone: what a roofline predicts for our kernels",
            "Written by `benchmarks/adreno740.py`; what it means is in [README.md](../README.md). Nothing here was "
            "measured on the phone but the paper's latencies (its Table 8).",
            "## Milliseconds of one inference, f16",
            table(
                ["model", "paper", "images", "buffers", "once", "plain IREE, once", "paper / images"],
                models,
            ),
            *(["Do not compile:", "\n".join(failed)] if failed else []),
            "## Agreement with the paper's latencies",
            "`scaled`: after one factor for all models, the median of paper / predicted.",
            table(
                ["prediction", "models", "Spearman", "median error", "paper / predicted", "median error, scaled"],
                [_agreed_cells(row) for row in agreed],
            ),
            "## What the kernels do, and what limits them with images",
            "GOP: multiply-adds and other arithmetic; GB that the threads of our shaders ask for; GB with each element "
            "once; percent of the predicted time.",
            table(
                ["model", "kernels", "plain IREE", "GOP", "GB of images", "GB of buffers", "GB once", *_LIMITS],
                limits,
            ),
        ]
    )


_LIMITS = ("launch", "arithmetic", "images", "buffers", "global memory")


def _agreed_cells(row: Mapping[str, Any]) -> list[str]:
    def percent(value: float | None) -> str:
        return "" if value is None else f"{100 * value:.0f}%"

    rank, ratio = row["spearman"], row["median_measured_over_predicted"]
    return [
        row["what"],
        str(row["models"]),
        "" if rank is None else f"{rank:.2f}",
        percent(row["median_relative_error"]),
        "" if ratio is None else f"{ratio:.2f}",
        percent(row["median_relative_error_scaled"]),
    ]


def _ms(variant: Variant, memory: str) -> str:
    return f"{variant.predicted_ms[memory]:.1f}" if memory in variant.predicted_ms else ""


def _rounded(prediction: Prediction) -> dict[str, float]:
    return {limit: round(value, 4) for limit, value in prediction.share.items()}
