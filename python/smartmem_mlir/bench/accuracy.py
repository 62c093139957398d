"""Is an engine's output right?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from smartmem_mlir.bench.results import Accuracy

Array = npt.NDArray[np.generic]


def compare(outputs: Sequence[Array], reference: Sequence[Array]) -> Accuracy:
    """Distance of an engine's outputs from the reference, the worst over all outputs.

    Engines may drop dimensions of extent 1 or narrow integers; that is no error. Everything else is.

    Args:
        outputs: In the model's order.
        reference: The same from the reference engine.
    """
    if len(outputs) != len(reference):
        return _incomparable(f"{len(outputs)} outputs, the model has {len(reference)}")
    relative = largest = 0.0
    for index, (got, wanted) in enumerate(zip(outputs, reference, strict=True)):
        if _without_ones(got.shape) != _without_ones(wanted.shape):
            return _incomparable(f"output {index} has shape {got.shape}, the model's has {wanted.shape}")
        exact, values = wanted.astype(np.float64), got.reshape(wanted.shape).astype(np.float64)
        # Equal infinities (a mask that is returned, say) are no difference.
        difference = np.subtract(values, exact, out=np.zeros_like(exact), where=values != exact)
        if not np.isfinite(difference).all():
            return _incomparable(f"output {index} is not finite where the reference is, or the other way round")
        norm = float(np.linalg.norm(exact[np.isfinite(exact)]))
        error = float(np.linalg.norm(difference))
        if error and not norm:
            return _incomparable(f"output {index} is not zero, the reference's is")
        relative = max(relative, error / norm if error else 0.0)
        largest = max(largest, float(np.abs(difference).max(initial=0.0)))
    return Accuracy(relative_l2=relative, max_abs=largest)


def _incomparable(problem: str) -> Accuracy:
    return Accuracy(relative_l2=None, max_abs=None, problem=problem)


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(extent for extent in shape if extent != 1)
