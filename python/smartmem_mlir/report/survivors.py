"""The layout transformations that are left: which, how large, why, and what would remove them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from smartmem_mlir.report.explanation import Movement

_REMEDIES: Final[Sequence[tuple[str, str]]] = (
    (
        "left to IREE",
        "compile without --baseline",
    ),
    (
        "result of the model",
        "return the tensor in the order in which it is computed, and transpose it outside the model",
    ),
    (
        "positions that are known only at run time",
        "indices that are constants of the model; a gather at positions that depend on the input is work, not layout",
    ),
    (
        "iteration space cannot be split",
        "a CPU target, whose kernels read through any such map; else one projection for each part of a fused one, or "
        "extents that the view's divisors divide",
    ),
    (
        "border is no element",
        "an extent that needs no padding (a multiple of the window), or padding by zeros in front of a convolution",
    ),
    (
        "parts that different operations compute",
        "one operation that computes all parts, such as one projection for all of them",
    ),
    (
        "not structured operations",
        "a reader that computes element by element: sorting, scatter and dynamic slices need their operand as it is",
    ),
)
"""A part of the reason that the passes give, and what to change in the model or the compilation."""
_GENERAL: Final = "no remedy is known for this reason"


@dataclass(frozen=True)
class Survivor:
    """A transformation that became a copy or a gather.

    Args:
        node: Its name in the model.
        operator: Its kind there.
        location: Where the model's source has it.
        bytes: What the copy reads and writes, at most: a view that was composed of several counts for each of them.
        reason: Why it was kept.
        remedy: What would remove it.
    """

    node: str
    operator: str
    location: str
    bytes: int
    reason: str
    remedy: str


def survivors(movements: Iterable[Movement]) -> list[Survivor]:
    """What was kept, the largest first."""
    kept = [
        Survivor(
            movement.node, movement.operator, movement.location, movement.bytes, movement.how, remedy(movement.how)
        )
        for movement in movements
        if movement.verdict == "kept"
    ]
    return sorted(kept, key=lambda each: -each.bytes)


def remedy(reason: str) -> str:
    """What would remove a transformation that was kept for this reason."""
    return next((advice for part, advice in _REMEDIES if part in reason), _GENERAL)
