"""Windows of a padded factor, which the workgroup that reads them lays out on its stack.

A convolution whose image somebody else computes, as the caller does, reads it with a border that nobody has written.
Rows of a kernel are pixels, and a block of them that is a box of the image reads a box of the padded image: a few lines
of it, or a part of some. The workgroup copies that box to its stack, where the first-level cache has it, and writes the
border there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, prod

from mlir import ir
from mlir.dialects import arith, memref

from smartmem_mlir.index_maps.box import Box, Ranges
from smartmem_mlir.index_maps.expr import ZERO, Dim, Expr, dim, dims, linearize
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.index_maps.view import Fill, Piece, View
from smartmem_mlir.kernels.addresses import ROW, SplitAddress, Tiling, split_address
from smartmem_mlir.kernels.cpu.blocks import WORK_PER_BYTE, price, sizes
from smartmem_mlir.kernels.cpu.lanes import Part, add, index, load, loop, number, scaled, scratch, splat, store
from smartmem_mlir.kernels.cpu.plan import KernelPlan
from smartmem_mlir.transforms.contraction_group import Read
from smartmem_mlir.transforms.view_code import index_value

MOST_BYTES = 44 * 1024
"""Of a window: a launch has some 60 KiB of stack for all of its kernels."""

WORK_PER_ELEMENT = 8.0
"""What it costs to lay out an element, in multiply-adds: it is read and written, few at a time at the borders."""


@dataclass(frozen=True)
class Windows:
    """What blocks of rows read of a factor, each block a box of it.

    Args:
        rows: Rows of a block.
        blocks: How many blocks there are.
        shape: Of a window.
        first: Coordinates of a window's first element in the factor, over the number of the block.
        access: Coordinates within the window over the iteration space.
    """

    rows: int
    blocks: int
    shape: tuple[int, ...]
    first: tuple[Expr, ...]
    access: tuple[Expr, ...]

    @property
    def bytes(self) -> int:
        """Of a window of f32."""
        return 4 * prod(self.shape)

    def address(self, tiling: Tiling) -> SplitAddress | None:
        """Where the kernel's elements are in their window; None when that does not split."""
        return split_address(linearize(self.access, self.shape), tiling)

    def view(self, factor: Sequence[int]) -> View:
        """All windows, one after the other, as a view of the factor."""
        inside = dims(1 + len(self.shape))[1:]
        exprs = [first + i for first, i in zip(self.first, inside, strict=True)]
        return View.mapped((self.blocks, *self.shape), factor, exprs)


def windows(read: Read, tiling: Tiling, rows: int) -> Windows | None:
    """What blocks of rows read.

    Args:
        read: The factor.
        tiling: How the iteration space is walked.
        rows: Of a block.

    Returns:
        None when blocks of so many rows are no boxes of pixels, or what they read moves with them unevenly.
    """
    cut = _cut(tiling, rows)
    if cut is None:
        return None
    outer, at, count = cut
    extents = tiling.extents
    inside = [ZERO if d in outer else dim(d) % count if d == at else dim(d) for d in range(len(extents))]
    start = [dim(d) if d in outer else dim(d) // count * count if d == at else ZERO for d in range(len(extents))]
    moved = simplify_exprs(start, Box.of(extents))
    ranges = Ranges(Box.of([count if d == at else extent for d, extent in enumerate(extents)]))
    substituted = tiling.substitution()
    blocks = tiling.num_rows // rows
    shape, first, access = [], [], []
    for expr in read.access:
        if not all(_is_linear(expr, d) for d in (*outer, at)):
            return None
        lo, hi = ranges.of(expr.substitute([ZERO if d in outer else dim(d) for d in range(len(extents))]))
        shape.append(hi - lo + 1)
        access.append(expr.substitute(inside) - lo)
        base = (expr.substitute(moved) + (lo - expr.const)).substitute(substituted)
        first.append(base.substitute([dim(0) * rows if d == ROW else ZERO for d in range(tiling.box.rank)]))
    (*firsts,) = simplify_exprs(first, Box.of((blocks,)))
    return Windows(rows, blocks, tuple(shape), tuple(firsts), tuple(access))


def _cut(tiling: Tiling, rows: int) -> tuple[set[int], int, int] | None:
    """The dimensions that a block of rows does not move along, the one that it has a part of, and how much of that.

    Those that are neither are whole in each block. None when a block is no such box.
    """
    inner = 1
    for position in reversed(range(len(tiling.rows))):
        d = tiling.rows[position]
        extent = tiling.extents[d]
        if rows <= inner * extent:
            count, rest = divmod(rows, inner)
            exact = rest == 0 and extent % count == 0
            return (set(tiling.rows[:position]), d, count) if exact else None
        inner *= extent
    return None


@dataclass(frozen=True)
class StagedPlan:
    """A contraction whose left factor is laid out window by window.

    Args:
        given: The contraction as it would be if its factor was in memory.
        plan: The contraction; its left factor's address is in a window.
        windows: What its workgroups lay out.
    """

    given: KernelPlan
    plan: KernelPlan
    windows: Windows

    @property
    def work(self) -> float:
        """What a workgroup costs, in multiply-adds, its window included."""
        laid_out = self.windows.bytes * (WORK_PER_BYTE + WORK_PER_ELEMENT / 4)
        return self.plan.work_of(self.windows.rows, self.plan.tiling.num_panels) + laid_out

    @property
    def cost(self) -> float:
        """As a launch of its own, see :func:`smartmem_mlir.kernels.cpu.blocks.price`."""
        return price(self.windows.blocks, self.work)


def stage(plan: KernelPlan, beside: int = 1) -> StagedPlan | None:
    """Chooses the rows of a workgroup.

    Args:
        plan: The contraction.
        beside: Kernels in the launch, taken to be like this one.

    Returns:
        None when the factor has several parts, or no window fits the stack.
    """
    if len(plan.lhs) != 1:
        return None
    count = plan.tiling.num_rows
    costs = [(price(beside * (count // rows), work_in_rows(plan, rows)), rows) for rows in _sizes(plan.tiling)]
    cost, rows = min(costs, default=(inf, 0))
    return None if cost == inf else stage_rows(plan, rows)


def stage_rows(plan: KernelPlan, rows: int) -> StagedPlan | None:
    """The plan with so many rows to a workgroup; None when that cannot be."""
    found = windows(plan.group.lhs.reads[0], plan.tiling, rows)
    address = None if found is None or found.bytes > MOST_BYTES else found.address(plan.tiling)
    if found is None or address is None or address.lanes != plan.lhs[0].lanes:
        return None
    return StagedPlan(plan, replace(plan.in_rows(rows), lhs=(address,)), found)


def work_in_rows(plan: KernelPlan, rows: int) -> float:
    """What a workgroup of so many rows costs, in multiply-adds, its window included; infinite when it cannot be."""
    staged = stage_rows(plan, rows)
    return inf if staged is None else staged.work


def _sizes(tiling: Tiling) -> Iterator[int]:
    """Rows of blocks to try: parts of a line, lines, images."""
    inner = 1
    for d in reversed(tiling.rows):
        yield from (inner * part for part in sizes(tiling.extents[d]) if part > 1 or inner == 1)
        inner *= tiling.extents[d]


def lay_out(plan: StagedPlan, view: View, source: ir.Value, block: ir.Value) -> ir.Value:
    """Writes a window to the stack.

    Args:
        plan: The contraction.
        view: The factor, of one tensor and of numbers.
        source: Memory of the tensor.
        block: Which window.

    Returns:
        The window's memory.
    """
    target = scratch(prod(plan.windows.shape))
    for piece in view.pieces:
        _Writer(plan, piece, view.operands[0], source, target, block).write()
    return target


class _Writer:
    """Writes what a piece of the padded factor has of a window.

    Args:
        plan: The contraction.
        piece: The piece.
        operand: Shape of the tensor that it reads.
        source: Memory of that tensor.
        target: Memory of the window.
        block: Which window.
    """

    def __init__(
        self,
        plan: StagedPlan,
        piece: Piece,
        operand: Sequence[int],
        source: ir.Value,
        target: ir.Value,
        block: ir.Value,
    ) -> None:
        self._shape = plan.windows.shape
        self._lanes = plan.plan.lanes
        self._piece = piece
        self._source, self._target = source, target
        self._address = None if isinstance(piece.source, Fill) else linearize(piece.exprs, operand)
        self._first = [index_value(first, [block]) for first in plan.windows.first]
        firsts = zip(plan.windows.first, self._first, range(len(self._shape)), strict=True)
        self._bounds = [self._bounds_of(*first) for first in firsts]

    def _bounds_of(self, expr: Expr, first: ir.Value, axis: int) -> tuple[int | ir.Value, int | ir.Value]:
        """The coordinates in the window at which the piece begins and ends along an axis."""
        lo, hi, extent = self._piece.box.lo[axis], self._piece.box.hi[axis], self._shape[axis]
        if expr.is_constant:
            return max(0, lo - expr.const), min(extent, hi - expr.const)
        begin = arith.maxsi(index(0), arith.subi(index(lo), first))
        return begin, arith.minsi(index(extent), arith.subi(index(hi), first))

    def write(self) -> None:
        """Writes it at the insertion point."""
        self._axis(0, [], index(0))

    def _axis(self, axis: int, at: list[ir.Value], place: ir.Value) -> None:
        """The axes from `axis` on; `at` are the coordinates in the factor before it, `place` where they are."""
        begin, end = self._bounds[axis]
        if isinstance(begin, int) and isinstance(end, int) and begin >= end:
            return
        if axis == len(self._shape) - 1:
            self._line(begin, end, at, place)
            return

        def step(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            moved = arith.addi(place, scaled(i, prod(self._shape[axis + 1 :])))
            self._axis(axis + 1, [*at, arith.addi(self._first[axis], i)], moved)
            return []

        loop(_value(begin), _value(end), 1, [], step)

    def _line(self, begin: int | ir.Value, end: int | ir.Value, at: Sequence[ir.Value], place: ir.Value) -> None:
        """Elements of the last axis: vectors where they are adjacent, then one by one."""
        first, stop = _value(begin), _value(end)
        axis, address = len(at), self._address
        if address is None or (address.coefficient(Dim(axis)) == 1 and _is_linear(address, axis)):
            count = arith.subi(stop, first)
            whole = arith.subi(count, arith.remui(count, index(self._lanes)))
            middle = arith.addi(first, arith.maxsi(whole, index(0)))
            self._each(first, middle, Part(0, self._lanes, self._lanes), at, place)
            first = middle
        self._each(first, stop, None, at, place)

    def _each(
        self, first: ir.Value, stop: ir.Value, part: Part | None, at: Sequence[ir.Value], place: ir.Value
    ) -> None:
        def step(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            target = arith.addi(place, i)
            if part is None:
                memref.StoreOp(self._element(i, at), self._target, [target])
            elif self._address is None:
                store(splat(self._number, part.lanes), self._target, target, part)
            else:
                store(load(self._source, self._at(i, at), part), self._target, target, part)
            return []

        loop(first, stop, 1 if part is None else part.lanes, [], step)

    @property
    def _number(self) -> float:
        assert isinstance(self._piece.source, Fill), "only numbers have no address"
        return float(self._piece.source.value)

    def _element(self, i: ir.Value, at: Sequence[ir.Value]) -> ir.Value:
        if self._address is None:
            return number(self._number)
        return memref.load(self._source, [self._at(i, at)])

    def _at(self, i: ir.Value, at: Sequence[ir.Value]) -> ir.Value:
        assert self._address is not None, "only tensors have addresses"
        return index_value(self._address, [*at, arith.addi(self._first[len(at)], i)])


def _is_linear(expr: Expr, axis: int) -> bool:
    """Whether a dimension occurs as itself only."""
    rest = expr - dim(axis) * expr.coefficient(Dim(axis))
    return axis not in rest.dims


def _value(bound: int | ir.Value) -> ir.Value:
    return add(index(0), bound) if isinstance(bound, int) else bound
