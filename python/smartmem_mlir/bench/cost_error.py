"""How far modelled times of kernels are from measured ones, and the rates that would bring them closest."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log, prod
from typing import Any, Literal, TypeAlias

from smartmem_mlir.bench.agreement import median_ratio, median_relative_error, spearman
from smartmem_mlir.bench.roofline import kernel_limit
from smartmem_mlir.bench.tables import table
from smartmem_mlir.iree.flow.work import KernelWork
from smartmem_mlir.layouts.rates import Rates
from smartmem_mlir.report.graph.model import Node
from smartmem_mlir.targets.description import Roofline

Family: TypeAlias = Literal["contraction", "attention", "rows", "IREE's"]

_NAMED = re.compile(r"^(contraction|attention|linear_attention|rows)_(\d+(?:x\d+)*)(?:_\d+)?$")
_FITTED = ("buffer_bytes_per_ns", "image_bytes_per_ns", "f32_operations_per_ns", "kernel_launch_ns")
_SWEEPS = 200
_WORST = 8
_FIRST_STEP, _LAST_STEP = 2.0, 1.01


@dataclass(frozen=True)
class Sample:
    """One kernel of a model.

    Args:
        model: The model's name.
        kernel: IREE's name of the entry point.
        family: What generated it.
        calls: Launches of one inference.
        modelled_ns: Time of one launch by the model.
        measured_ns: Time of one launch, measured.
    """

    model: str
    kernel: str
    family: Family
    calls: int
    modelled_ns: float
    measured_ns: float


@dataclass(frozen=True)
class Timed:
    """A kernel of a GPU with its time.

    Args:
        model: The model's name.
        work: What it does.
        measured_ns: Device time of one launch.
    """

    model: str
    work: KernelWork
    measured_ns: float


def family_of(kernel: str) -> Family:
    """What generated a kernel, by its name."""
    found = _NAMED.match(kernel)
    if found is None:
        return "IREE's"
    names: dict[str, Family] = {
        "contraction": "contraction",
        "attention": "attention",
        "linear_attention": "attention",
        "rows": "rows",
    }
    return names[found[1]]


def multiply_adds(kernel: str) -> int:
    """Multiply-adds of a generated CPU kernel, whose name has the extents of its loops; 0 where it has no contraction.

    An attention's are its batches, rows, keys, depth and width of the values: two products. Without a softmax they are
    those of the keys with the values, and of the rows with their product.
    """
    found = _NAMED.match(kernel)
    if found is None or found[1] == "rows":
        return 0
    extents = [int(extent) for extent in found[2].split("x")]
    if found[1] == "attention":
        *outer, depth, width = extents
        return prod(outer) * (depth + width)
    if found[1] == "linear_attention":
        *outer, rows, keys, depth, width = extents
        return prod(outer) * (rows + keys) * depth * width
    return prod(extents)


def cpu_ns(kernel: str, streamed_bytes: int, rates: Rates) -> float:
    """Time of a kernel on one core by the rates that layouts are chosen by.

    The multiply-adds of a generated kernel at its rate, and what it reads and writes, weights apart, as one stream. Of
    IREE's kernels only the stream is modelled.

    Args:
        kernel: Its name.
        streamed_bytes: What it reads and writes but weights.
        rates: Of the target.
    """
    return multiply_adds(kernel) / rates.kernel_macs_per_ns + streamed_bytes / rates.stream_bytes_per_ns


def gpu_ns(work: KernelWork, device: Roofline) -> float:
    """Time of a kernel on a GPU by its roofline, what comes before its first instruction included."""
    return device.kernel_launch_ns + kernel_limit(work, device)[1]


def cpu_samples(model: str, nodes: Iterable[Node], rates: Rates) -> list[Sample]:
    """Modelled beside measured; what was not measured or whose bytes are not known is left out.

    Args:
        model: The model's name.
        nodes: Of the graph of its kernels, with times; see `report.graph.build.graph_after`.
        rates: Of the target.
    """
    launches: defaultdict[str, list[Sample]] = defaultdict(list)
    for node in nodes:
        if node.kind != "kernel" or not node.time_ns or node.read_bytes is None or node.written_bytes is None:
            continue
        streamed = max(0, node.read_bytes + node.written_bytes - node.weight_bytes)
        modelled = cpu_ns(node.name, streamed, rates)
        launches[node.name].append(Sample(model, node.name, family_of(node.name), 1, modelled, node.time_ns))
    return [replace(own[0], calls=len(own)) for own in launches.values() if own[0].modelled_ns]


def gpu_samples(timed: Iterable[Timed], device: Roofline) -> list[Sample]:
    """Modelled beside measured."""
    return [
        Sample(
            each.model,
            each.work.name,
            family_of(each.work.name),
            each.work.calls,
            gpu_ns(each.work, device),
            each.measured_ns,
        )
        for each in timed
    ]


def fit_roofline(timed: Sequence[Timed], start: Roofline) -> Roofline:
    """The rates that make the mean of |log(modelled / measured)| least, from a start, one after the other.

    f16 is given the rate of f32 in proportion to the start's: kernels of ours compute in f32 everywhere.
    """

    def error(device: Roofline) -> float:
        return statistics.fmean(abs(log(gpu_ns(each.work, device) / each.measured_ns)) for each in timed)

    best, least, step = start, error(start), _FIRST_STEP
    for _ in range(_SWEEPS):
        before = least
        for field in _FITTED:
            for factor in (step, 1 / step):
                changed = best.model_copy(update={field: getattr(best, field) * factor})
                if (found := error(changed)) < least:
                    best, least = changed, found
        if least == before:
            if step <= _LAST_STEP:
                break
            step = step**0.5
    f16 = best.f32_operations_per_ns * start.f16_operations_per_ns / start.f32_operations_per_ns
    return best.model_copy(update={"f16_operations_per_ns": f16})


def cross_validated(timed: Sequence[Timed], start: Roofline) -> list[Sample]:
    """Each model's kernels by the rates that fit the other models: what the fit is worth for one it has not seen."""
    found: list[Sample] = []
    for model in dict.fromkeys(each.model for each in timed):
        others = [each for each in timed if each.model != model]
        if others:
            found += gpu_samples([each for each in timed if each.model == model], fit_roofline(others, start))
    return found


def scaled_by_family(samples: Sequence[Sample]) -> list[Sample]:
    """Each model's kernels times one factor a family, the median of measured / modelled in the other models."""
    found = []
    for sample in samples:
        others = [each for each in samples if each.model != sample.model and each.family == sample.family]
        ratio = median_ratio([each.modelled_ns for each in others], [each.measured_ns for each in others])
        if ratio is not None:
            found.append(replace(sample, modelled_ns=sample.modelled_ns * ratio))
    return found


def errors(samples: Sequence[Sample]) -> dict[str, Any]:
    """Rank correlation, median relative error, median of measured / modelled, and for each model the ratio of sums."""
    modelled = [sample.modelled_ns for sample in samples]
    measured = [sample.measured_ns for sample in samples]
    by_model = {
        name: sum(s.calls * s.modelled_ns for s in own) / sum(s.calls * s.measured_ns for s in own)
        for name in dict.fromkeys(sample.model for sample in samples)
        for own in [[sample for sample in samples if sample.model == name]]
    }
    return {
        "kernels": len(samples),
        "spearman": _rounded(spearman(modelled, measured)),
        "median_relative_error": _rounded(median_relative_error(modelled, measured)),
        "median_measured_over_modelled": _rounded(median_ratio(modelled, measured)),
        "modelled_over_measured_by_model": {name: _rounded(ratio) for name, ratio in by_model.items()},
    }


def by_family(samples: Sequence[Sample]) -> dict[str, dict[str, Any]]:
    """:func:`errors` of each family."""
    return _grouped(samples, lambda sample: sample.family)


def _grouped(samples: Sequence[Sample], key: Callable[[Sample], str]) -> dict[str, dict[str, Any]]:
    groups: Mapping[str, list[Sample]] = {
        name: [sample for sample in samples if key(sample) == name] for name in dict.fromkeys(map(key, samples))
    }
    return {name: errors(own) for name, own in groups.items()}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def markdown(targets: Mapping[str, Mapping[str, Any]]) -> str:
    """The tables of all targets."""
    rows, families, worst = [], [], []
    for target, part in targets.items():
        rows += [
            [target, "shipped", *_cells(part["errors"])],
            [target, part["recalibrated"]["how"], *_cells(part["recalibrated"])],
        ]
        families += [[target, family, *_cells(found)] for family, found in part["by_family"].items()]
        by_excess = sorted(part["kernels"], key=lambda k: -k["calls"] * abs(k["measured_ns"] - k["modelled_ns"]))
        worst += [
            [
                target,
                kernel["model"],
                kernel["kernel"],
                str(kernel["calls"]),
                f"{kernel['measured_ns'] / 1e3:.1f}",
                f"{kernel['modelled_ns'] / 1e3:.1f}",
            ]
            for kernel in by_excess[:_WORST]
        ]
    columns = ["kernels", "Spearman", "median error", "measured / modelled", "modelled / measured, whole models"]
    return "\n\n".join(
        [
            "# Modelled and measured times of kernels",
            "Written by `benchmarks/cost_model.py`; what it means is in [README.md](../README.md).",
            table(["target", "rates", *columns], rows),
            "## By what generated the kernels, shipped rates",
            table(["target", "family", *columns], families),
            "## Where the model is off most, by time of an inference",
            table(["target", "model", "kernel", "calls", "measured, us", "modelled, us"], worst),
            "",
        ]
    )


def _cells(found: Mapping[str, Any]) -> list[str]:
    rank, error = found["spearman"], found["median_relative_error"]
    ratio, sums = found["median_measured_over_modelled"], found["modelled_over_measured_by_model"]
    return [
        str(found["kernels"]),
        "" if rank is None else f"{rank:.2f}",
        "" if error is None else f"{100 * error:.0f}%",
        "" if ratio is None else f"{ratio:.2f}",
        ", ".join(f"{model} {value:.2f}" for model, value in sums.items()),
    ]
