"""Latency that a roofline predicts for the paper's phone, beside the latency that the paper measured there."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from smartmem_mlir import api
from smartmem_mlir.bench.agreement import median_ratio, median_relative_error, spearman
from smartmem_mlir.bench.roofline import predict
from smartmem_mlir.bench.tables import table
from smartmem_mlir.errors import CompilerError, OptionError
from smartmem_mlir.ingress.model import ImportedModel
from smartmem_mlir.iree.compiler import CompilerOptions, run_iree_compile
from smartmem_mlir.iree.device_target import compile_flags
from smartmem_mlir.iree.flow.work import ModelWork, read_work
from smartmem_mlir.iree.isolation import lower_isolated
from smartmem_mlir.targets import Pipeline, TargetDescription, load_pipeline, load_target
from smartmem_mlir.targets.description import Roofline

VariantName: TypeAlias = Literal["images", "buffers", "iree"]
VARIANTS: tuple[VariantName, ...] = ("images", "buffers", "iree")
"""Ours with each tensor where the target reads it fastest, ours in buffers, and plain IREE."""

LAUNCHES_NS = (0.0, 10_000.0, 30_000.0)
"""Launch times that the agreement is computed for, because the paper gives none."""

_SHADERS = "smartmem-lower-groups-to-vulkan"


class Variant(BaseModel):
    """One model as it was compiled, and what is predicted.

    Args:
        error: Why there is nothing else.
        kernels: Launches of one inference, copies and fills outside kernels included.
        operations: Multiply-adds and other arithmetic.
        least_bytes: What kernels and copies read and write, each element once.
        buffer_bytes: What threads of our shaders ask of buffers.
        image_bytes: What they ask of images.
        ms: Predicted time; for plain IREE, whose code is not made, that is `once_ms`.
        once_ms: The same if every element came from global memory once and all else from caches.
        launch_ms: How much of each are launches.
        share: Of `ms`, by what limits it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    error: str | None = None
    kernels: int = 0
    operations: int = 0
    least_bytes: int = 0
    buffer_bytes: int = 0
    image_bytes: int = 0
    ms: float = 0.0
    once_ms: float = 0.0
    launch_ms: float = 0.0
    share: dict[str, float] = {}


Row: TypeAlias = dict[VariantName, Variant]


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


class PhoneModel:
    """A model of the paper, compiled in f16 as far as IREE's flow IR.

    Args:
        model: ONNX file.
        target_name: A target that generates shaders.
    """

    def __init__(self, model: Path, target_name: str) -> None:
        self._target: TargetDescription = load_target(target_name)
        options = api.CompileOptions(target=target_name, dtype="f16")
        self._imported: ImportedModel = api.import_model(model, options, options.progress)
        self._before_shaders: str | None = None

    def work(self, variant: VariantName) -> ModelWork:
        """The kernels of a variant.

        Raises:
            CompilerError: It does not compile.
        """
        with tempfile.TemporaryDirectory() as folder:
            options = CompilerOptions(reproducer=Path(folder) / "reproducer")
            source, flow = Path(folder) / "model.mlir", Path(folder) / "flow.mlir"
            source.write_text(self._lowered(variant, options))
            flags = [*compile_flags(self._target), "--compile-to=flow", "--mlir-print-op-generic"]
            run_iree_compile(source, flow, flags, options)
            return read_work(flow)

    def _lowered(self, variant: VariantName, options: CompilerOptions) -> str:
        if variant == "iree":
            return lower_isolated(self._imported.module, load_pipeline("baseline"), self._target, options).text
        first, rest = _at_shaders(load_pipeline(self._target.pipeline))
        if self._before_shaders is None:
            self._before_shaders = lower_isolated(self._imported.module, first, self._target, options, emit=False).text
        storage = {"images": "auto", "buffers": "buffer"}[variant]
        return lower_isolated(
            self._before_shaders, rest.with_option(_SHADERS, "storage", storage), self._target, options
        ).text


def _at_shaders(pipeline: Pipeline) -> tuple[Pipeline, Pipeline]:
    """The passes before tensors get their memory, and the others."""
    at = next(i for i, spec in enumerate(pipeline.passes) if spec.name == _SHADERS)
    return (
        pipeline.model_copy(update={"passes": pipeline.passes[:at]}),
        pipeline.model_copy(update={"passes": pipeline.passes[at:]}),
    )


def predict_variant(model: PhoneModel, variant: VariantName, device: Roofline) -> Variant:
    """What is predicted for a variant; where it does not compile, why."""
    try:
        work = model.work(variant)
    except CompilerError as error:
        return Variant(error=error.what)
    asked, once = predict(work, device), predict(work, device, "once")
    launches = sum(kernel.calls for kernel in work.kernels) + work.copies
    return Variant(
        kernels=launches,
        operations=sum(kernel.calls * sum(kernel.operations.values()) for kernel in work.kernels),
        least_bytes=sum(kernel.calls * kernel.least_bytes for kernel in work.kernels) + work.copy_bytes,
        buffer_bytes=sum(kernel.calls * (kernel.issued_buffer_bytes or 0) for kernel in work.kernels),
        image_bytes=sum(kernel.calls * kernel.issued_image_bytes for kernel in work.kernels),
        ms=round(asked.ms, 3),
        once_ms=round(once.ms, 3),
        launch_ms=round(launches * device.kernel_launch_ns / 1e6, 3),
        share={limit: round(value, 4) for limit, value in asked.share.items()},
    )


def agreement(rows: Mapping[str, Row], paper_ms: Mapping[str, float]) -> list[dict[str, Any]]:
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
                "median_paper_over_predicted": ratio if is_time else None,
                "median_relative_error_scaled": median_relative_error(scaled, theirs),
            }
        )

    def times(variant: VariantName, field: Literal["ms", "once_ms"], launch_ns: float) -> dict[str, float]:
        compiled = {name: row[variant] for name, row in rows.items() if variant in row and not row[variant].error}
        return {
            name: getattr(found, field) - found.launch_ms + found.kernels * launch_ns / 1e6
            for name, found in compiled.items()
        }

    for launch_ns in LAUNCHES_NS:
        suffix = f"{launch_ns / 1000:g} us a launch"
        add(f"images, {suffix}", times("images", "ms", launch_ns))
        add(f"buffers, {suffix}", times("buffers", "ms", launch_ns))
        add(f"buffers, each element once, {suffix}", times("buffers", "once_ms", launch_ns))
        add(f"plain IREE, each element once, {suffix}", times("iree", "once_ms", launch_ns))
    work = {name: float(row["buffers"].operations) for name, row in rows.items() if row["buffers"].operations}
    add("arithmetic alone", work, is_time=False)
    return found


def markdown(rows: Mapping[str, Row], paper_ms: Mapping[str, float], agreed: list[dict[str, Any]]) -> str:
    """All tables."""
    models, limits, failed = [], [], []
    for name, row in rows.items():
        images, buffers, plain = (row[variant] for variant in VARIANTS)
        factor = f"{paper_ms[name] / images.ms:.1f}" if images.ms else ""
        models.append(
            [name, f"{paper_ms[name]:g}", *map(_ms, (images.ms, buffers.ms, buffers.once_ms, plain.once_ms)), factor]
        )
        failed += [f"- {name}, {variant}: {found.error}" for variant, found in row.items() if found.error]
        if not images.error:
            share = [f"{100 * images.share.get(limit, 0):.0f}" for limit in _LIMITS]
            sizes = (images.operations, images.image_bytes, images.buffer_bytes, images.least_bytes)
            kernels = [str(images.kernels), str(plain.kernels or "")]
            limits.append([name, *kernels, *(f"{size / 1e9:.2f}" for size in sizes), *share])
    return "\n\n".join(
        [
            "# The paper's phone: what a roofline predicts for our kernels",
            "Written by `benchmarks/adreno740.py`; what it means is in [README.md](../README.md). Nothing here was "
            "measured on the phone but the paper's latencies (its Table 8).",
            "## Milliseconds of one inference, f16",
            table(
                [
                    *("model", "paper", "ours, images", "ours, buffers", "ours, buffers, each element once"),
                    *("plain IREE, each element once", "paper / images"),
                ],
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

    rank, ratio = row["spearman"], row["median_paper_over_predicted"]
    return [
        row["what"],
        str(row["models"]),
        "" if rank is None else f"{rank:.2f}",
        percent(row["median_relative_error"]),
        "" if ratio is None else f"{ratio:.2f}",
        percent(row["median_relative_error_scaled"]),
    ]


def _ms(value: float) -> str:
    return f"{value:.1f}" if value else ""
