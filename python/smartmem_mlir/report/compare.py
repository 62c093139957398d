"""How far two sets of outputs are apart, and whether that is a mismatch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from smartmem_mlir.signature import TensorSpec

Array = npt.NDArray[np.generic]

TOLERANCE = {"f64": 1e-4, "f32": 1e-4, "f16": 2e-2}
"""Largest accepted relative L2 distance by the type that the model computes in. Sums are reordered and vectorised, so
f32 results differ from the reference by 1e-6 to 1e-5; wrong layouts are off by more than 1e-2."""


@dataclass(frozen=True)
class Difference:
    """One output against its reference.

    Args:
        output: The output's name.
        max_abs: Largest absolute difference.
        relative_l2: Norm of the difference over the norm of the reference; over 1 where the reference is all zeros.
        top1: Fraction of rows (last axis) whose largest element is the same; None for what has no rows.
        matches: Whether it counts as equal.
        why: The reason if it does not.
    """

    output: str
    max_abs: float
    relative_l2: float
    top1: float | None
    matches: bool
    why: str = ""


def compare(
    specs: Sequence[TensorSpec], given: Sequence[Array], reference: Sequence[Array], tolerance: float
) -> list[Difference]:
    """Compare outputs one by one.

    Args:
        specs: The outputs of the module.
        given: What the module computed.
        reference: What the reference computed; of the same shapes, possibly of a wider type.
        tolerance: Largest accepted relative L2 distance of floating-point outputs; integers must be equal.
    """
    return [
        _difference(spec, values, wanted, tolerance)
        for spec, values, wanted in zip(specs, given, reference, strict=True)
    ]


def _difference(spec: TensorSpec, given: Array, reference: Array, tolerance: float) -> Difference:
    if given.shape != reference.shape:
        return Difference(
            spec.name, np.inf, np.inf, None, False, f"shape {given.shape}, the reference has {reference.shape}"
        )
    a, b = given.astype(np.float64), reference.astype(np.float64)
    # Equal infinities and NaNs in the same places are agreement; anywhere else they are not.
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    comparable = np.isfinite(a) & np.isfinite(b)
    delta = np.where(same, 0.0, np.where(comparable, np.subtract(a, b, where=comparable, out=np.zeros_like(a)), np.inf))
    max_abs = float(np.max(np.abs(delta), initial=0.0))
    norm = float(np.linalg.norm(b[np.isfinite(b)]))
    relative = float(np.linalg.norm(delta.ravel())) / (norm or 1.0)
    top1 = _top1(a, b) if spec.numpy_dtype.kind == "f" else None
    if not np.all(comparable | same):
        why = "NaN or infinity in different places"
    elif spec.numpy_dtype.kind != "f":
        why = "" if bool(np.all(same)) else f"{int(np.sum(~same))} of {a.size} elements differ"
    else:
        why = "" if relative <= tolerance else f"relative L2 {relative:.2e} is above {tolerance:g}"
    return Difference(spec.name, max_abs, relative, top1, not why, why)


def _top1(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float | None:
    if a.ndim == 0 or a.shape[-1] < 2 or a.size == 0:
        return None
    return float(np.mean(np.argmax(a, axis=-1) == np.argmax(b, axis=-1)))
