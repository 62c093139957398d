"""Integer boxes and the interval arithmetic of expressions over them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from smartmem_mlir.index_maps.errors import IndexMapError, IndexOverflowError
from smartmem_mlir.index_maps.expr import Atom, Dim, Expr, FloorDiv

INT64_MAX = 2**63 - 1
Interval = tuple[int, int]
"""Least and greatest value, both included."""


@dataclass(frozen=True, slots=True)
class Box:
    """The integer points with `lo[i] <= x[i] < hi[i]`. Rank 0 has one point; a box with `lo[i] == hi[i]` has none."""

    lo: tuple[int, ...]
    hi: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.lo) != len(self.hi):
            raise IndexMapError(f"box bounds {self.lo} and {self.hi} differ in rank")
        if any(lo > hi for lo, hi in zip(self.lo, self.hi, strict=True)):
            raise IndexMapError(f"box {self} has a lower bound above its upper bound")

    @staticmethod
    def of(extents: Iterable[int]) -> Box:
        """The box `[0, e0) x [0, e1) x ...`: a tensor's index space.

        Raises:
            IndexMapError: An extent is negative.
            IndexOverflowError: The number of points does not fit in int64.
        """
        hi = tuple(map(int, extents))
        if any(e < 0 for e in hi):
            raise IndexMapError(f"shape {list(hi)} has a negative extent")
        # Zero extents do not excuse the others: the strides of [0, 2^40, 2^40] overflow all the same.
        if prod(e for e in hi if e) > INT64_MAX:
            raise IndexOverflowError(f"shape {list(hi)} has more than 2^63-1 elements")
        return Box((0,) * len(hi), hi)

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.lo)

    @property
    def extents(self) -> tuple[int, ...]:
        """Number of points along each axis."""
        return tuple(hi - lo for lo, hi in zip(self.lo, self.hi, strict=True))

    @property
    def volume(self) -> int:
        """Number of points."""
        return prod(self.extents)

    @property
    def is_empty(self) -> bool:
        """Whether there is no point."""
        return any(lo == hi for lo, hi in zip(self.lo, self.hi, strict=True))

    def contains(self, other: Box) -> bool:
        """Whether every point of `other` is in this box."""
        if other.is_empty:
            return True
        return all(a <= b for a, b in zip(self.lo, other.lo, strict=True)) and all(
            a >= b for a, b in zip(self.hi, other.hi, strict=True)
        )

    def intersect(self, other: Box) -> Box | None:
        """The common points, None if there are none."""
        lo = tuple(map(max, self.lo, other.lo))
        hi = tuple(map(min, self.hi, other.hi))
        return Box(lo, hi) if all(a < b for a, b in zip(lo, hi, strict=True)) else None

    def with_axis(self, axis: int, lo: int, hi: int) -> Box:
        """This box with `[lo, hi)` along `axis`."""
        return Box((*self.lo[:axis], lo, *self.lo[axis + 1 :]), (*self.hi[:axis], hi, *self.hi[axis + 1 :]))

    def product(self, other: Box) -> Box:
        """The Cartesian product; `other`'s axes come last."""
        return Box(self.lo + other.lo, self.hi + other.hi)

    def cross_section(self, axis: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Bounds on all axes but one. Boxes that touch along `axis` with equal cross-sections merge into a box."""
        return self.lo[:axis] + self.lo[axis + 1 :], self.hi[:axis] + self.hi[axis + 1 :]

    def __str__(self) -> str:
        return "[" + ", ".join(f"{lo}:{hi}" for lo, hi in zip(self.lo, self.hi, strict=True)) + "]"


def merge_boxes(boxes: Sequence[Box]) -> list[Box]:
    """Fewer boxes with the same points: greedily joins disjoint boxes that touch along one axis.

    Deterministic; not always the minimum, which is NP-hard to find.
    """
    current = sorted(boxes, key=lambda box: (box.lo, box.hi))
    merged = True
    while merged and len(current) > 1:
        merged = False
        for axis in reversed(range(current[0].rank)):
            joined: list[Box] = []
            open_at: dict[object, int] = {}
            for box in sorted(current, key=lambda b: b.lo[axis]):
                section = box.cross_section(axis)
                at = open_at.get((section, box.lo[axis]))
                if at is None:
                    at = len(joined)
                    joined.append(box)
                else:
                    joined[at] = joined[at].with_axis(axis, joined[at].lo[axis], box.hi[axis])
                    merged = True
                open_at[section, box.hi[axis]] = at
            current = joined
    return sorted(current, key=lambda box: (box.lo, box.hi))


class Ranges:
    """Interval arithmetic: bounds on the value of any expression over one non-empty box.

    Sound, exact for a linear expression and for a division of one, possibly loose when the same dimension occurs in
    several atoms. Results are remembered, so that a DAG costs its number of nodes.
    """

    __slots__ = ("_memo", "box")

    def __init__(self, box: Box) -> None:
        self.box = box
        self._memo: dict[Atom, Interval] = {}

    def of(self, expr: Expr) -> Interval:
        """Least and greatest value that `expr` may take."""
        lo = hi = expr.const
        for atom, coef in expr.terms:
            a, b = self._atom(atom)
            if coef > 0:
                lo += coef * a
                hi += coef * b
            else:
                lo += coef * b
                hi += coef * a
        return lo, hi

    def _atom(self, atom: Atom) -> Interval:
        found = self._memo.get(atom)
        if found is None:
            found = self._memo[atom] = self._compute(atom)
        return found

    def _compute(self, atom: Atom) -> Interval:
        if isinstance(atom, Dim):
            return self.box.lo[atom.index], self.box.hi[atom.index] - 1
        lo, hi = self.of(atom.arg)
        k = atom.value
        if isinstance(atom, FloorDiv):
            return lo // k, hi // k
        if lo // k == hi // k:
            return lo % k, hi % k
        return 0, k - 1

    def check_int64(self, exprs: Sequence[Expr]) -> None:
        """Refuses expressions with an intermediate value that may leave int64, in any order of summation.

        Raises:
            IndexOverflowError: Some subexpression is too large.
        """
        for expr in exprs:
            for sub in expr.subexprs():
                size = abs(sub.const)
                for atom, coef in sub.terms:
                    lo, hi = self._atom(atom)
                    size += abs(coef) * max(abs(lo), abs(hi), 1)
                if size > INT64_MAX:
                    raise IndexOverflowError(
                        f"index expression reaches 2^63 over {self.box}: {sub!r}", hint="use smaller shapes"
                    )
