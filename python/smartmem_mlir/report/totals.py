"""A model before and after in a few numbers, as `smartmem explain` shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from smartmem_mlir.report.schema import Report


class Totals(BaseModel):
    """Numbers of one state of a model; None where they are not known.

    Args:
        transforms: Layout transformations: data-movement operators whose results are no constants.
        transform_bytes: What they read and write, each as a kernel of its own.
        kernels: Kernels of one inference.
        movement_kernels: Those that only move data.
        kernel_bytes: What the kernels read and write.
        modelled_ms: Modelled time of one inference on one core.
        measured_ms: Time of the kernels of one inference, measured.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    transforms: int | None = None
    transform_bytes: int | None = None
    kernels: int | None = None
    movement_kernels: int | None = None
    kernel_bytes: int | None = None
    modelled_ms: float | None = None
    measured_ms: float | None = None


def before_and_after(
    report: Report, other: Report | None = None, measured_ms: Mapping[str, float] | None = None
) -> dict[str, Totals]:
    """The states "before" and "after" compilation.

    Args:
        report: Of the compilation.
        other: Of another compilation of the same model, whose kernels are those "before": plain IREE's.
        measured_ms: Times of the kernels by the state that they belong to.
    """
    moved = [movement for movement in report.movements if movement.verdict != "constant"]
    kept = [movement for movement in moved if movement.verdict == "kept"]
    times = measured_ms or {}
    written, chosen = (
        sum(getattr(decision, key) for decision in report.layouts) / 1e6 if report.layouts else None
        for key in ("written_ns", "objective_ns")
    )
    return {
        "before": Totals(
            transforms=len(moved),
            transform_bytes=sum(movement.bytes for movement in moved),
            modelled_ms=written,
            measured_ms=times.get("before"),
            **(_kernels(other) if other is not None else {}),
        ),
        "after": Totals(
            transforms=len(kept),
            transform_bytes=sum(movement.bytes for movement in kept),
            modelled_ms=chosen,
            measured_ms=times.get("after"),
            **_kernels(report),
        ),
    }


def _kernels(report: Report) -> dict[str, Any]:
    flow = report.flow
    return {
        "kernels": flow.kernels,
        "movement_kernels": flow.movement_kernels,
        "kernel_bytes": flow.total_bytes,
    }
