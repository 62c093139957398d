"""Preimages of boxes under maps: where each piece of an inner view is read by an outer one.

The preimage of a box under a quasi-affine map need not be a box (a concat along columns, flattened, is read in
stripes). It is cut into boxes along one dimension at a time: interval arithmetic labels the values of the dimension
inside, outside or mixed; runs of equal label stay whole and mixed values are cut along another dimension. The number of
boxes is bounded; a view that needs more is refused, because the code for it would be worse than a copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smartmem_mlir.index_maps.box import Box, Ranges, merge_boxes
from smartmem_mlir.index_maps.errors import PieceLimitExceeded
from smartmem_mlir.index_maps.expr import Expr
from smartmem_mlir.index_maps.map import IndexMap

MAX_PIECES = 256
"""Default bound on the pieces of one view."""
MAX_EVALUATIONS = 1 << 14
"""Bound on the interval evaluations of one composition. A box or a run of values costs about log2(extent) of them."""

_OUT, _IN, _MIXED = range(3)


class _Budget:
    """Counts interval evaluations, so that a hopeless composition is refused within a fraction of a second."""

    def __init__(self, evaluations: int = MAX_EVALUATIONS) -> None:
        self.left = evaluations

    def spend(self, index_map: IndexMap) -> None:
        self.left -= 1
        if self.left < 0:
            raise PieceLimitExceeded(
                f"the pieces of a view fall apart into very many boxes under {index_map}",
                hint="keep the result's axes apart, or materialize",
            )


def cells(index_map: IndexMap, targets: Sequence[Box], max_pieces: int) -> Iterator[tuple[int, Box]]:
    """Cuts the map's domain by the target box that each point lands in.

    Args:
        index_map: The outer piece's map.
        targets: Disjoint boxes that cover everything the map reaches.
        max_pieces: Bound on the number of boxes for all targets together.

    Yields:
        `(number of the target, box of the domain)`; the boxes are disjoint and cover the domain.

    Raises:
        PieceLimitExceeded: Too many boxes.
    """
    if len(targets) == 1:
        yield 0, index_map.domain
        return
    reached = index_map.bounds()
    count = 0
    budget = _Budget()
    for at, target in enumerate(targets):
        if target.intersect(reached) is None:
            continue
        found = _preimage(index_map, target, budget)
        count += len(found)
        if count > max_pieces:
            raise PieceLimitExceeded(
                f"the pieces of a view fall apart into more than {max_pieces} boxes under {index_map}",
                hint="keep the result's axes apart, or materialize",
            )
        for box in found:
            yield at, box


def preimage(index_map: IndexMap, target: Box) -> list[Box]:
    """Disjoint boxes of the map's domain with exactly the points that the map sends into `target`.

    Raises:
        PieceLimitExceeded: The preimage is not a few boxes.
    """
    return _preimage(index_map, target, _Budget())


def _preimage(index_map: IndexMap, target: Box, budget: _Budget) -> list[Box]:
    found: list[Box] = []
    todo = [index_map.domain]
    while todo:
        box = todo.pop()
        budget.spend(index_map)
        ranges = Ranges(box)
        undecided: int | None = None
        inside = True
        for k, expr in enumerate(index_map.exprs):
            label = _label(ranges.of(expr), target.lo[k], target.hi[k])
            if label == _OUT:
                inside, undecided = False, None
                break
            if label == _MIXED and undecided is None:
                inside, undecided = False, k
        if inside:
            found.append(box)
        elif undecided is not None:
            expr = index_map.exprs[undecided]
            axis = _dominant_axis(expr, box, ranges)
            interval = target.lo[undecided], target.hi[undecided]
            for label, lo, hi in _runs(index_map, undecided, box, axis, interval, budget):
                if label == _IN:
                    todo.append(box.with_axis(axis, lo, hi))
                elif label == _MIXED:
                    todo.extend(box.with_axis(axis, at, at + 1) for at in range(lo, hi))
    return merge_boxes(found)


def _label(interval: tuple[int, int], lo: int, hi: int) -> int:
    if interval[1] < lo or interval[0] >= hi:
        return _OUT
    return _IN if lo <= interval[0] and interval[1] < hi else _MIXED


def _dominant_axis(expr: Expr, box: Box, ranges: Ranges) -> int:
    """The dimension whose value decides most: fixing it narrows the range of `expr` most."""
    candidates = [i for i in sorted(expr.dims) if box.hi[i] - box.lo[i] > 1]

    def width_when_fixed(axis: int) -> int:
        lo, hi = Ranges(box.with_axis(axis, box.lo[axis], box.lo[axis] + 1)).of(expr)
        return hi - lo

    return min(candidates, key=lambda axis: (width_when_fixed(axis), axis))


def _runs(
    index_map: IndexMap, coordinate: int, box: Box, axis: int, target: tuple[int, int], budget: _Budget
) -> list[tuple[int, int, int]]:
    """`(label, first, end)` for maximal runs of values of `axis`, by bisection; a mixed run consists of single values
    that are undecided on their own."""
    runs: list[tuple[int, int, int]] = []
    stack = [(box.lo[axis], box.hi[axis])]
    while stack:
        first, end = stack.pop()
        budget.spend(index_map)
        reached = Ranges(box.with_axis(axis, first, end)).of(index_map.exprs[coordinate])
        label = _label(reached, *target)
        if label == _MIXED and end - first > 1:
            middle = (first + end) // 2
            stack += [(middle, end), (first, middle)]
        elif runs and runs[-1][0] == label:
            runs[-1] = (label, runs[-1][1], end)
        else:
            runs.append((label, first, end))
    return runs
