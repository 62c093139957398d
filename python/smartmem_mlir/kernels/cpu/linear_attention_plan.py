"""How attention without a softmax runs on a CPU: what a workgroup computes, and what lies on the stack.

A workgroup takes some (batch, head) matrices. Of each it lays keys and values out row by row, as many at a time as the
first-level cache holds besides the state, computing what stands in front of the products on the way, and adds their
product to the state, a row of values for each column of a key. Then it lays out a few rows of queries, multiplies them
by the state, and goes on with what follows. The rows of the product are on the stack as well, so that an element of the
result may need others of its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import Expr, delinearize, dim, linearize
from smartmem_mlir.kernels.address_claims import Walk, claim_address
from smartmem_mlir.kernels.cpu.attention_plan import (
    DEPTH,
    KEY,
    MAX_LANE_VECTORS,
    OUTER,
    ROW,
    VALUE,
    Operand,
    Source,
    Space,
    even,
    padded,
)
from smartmem_mlir.kernels.cpu.blocks import choose_blocks
from smartmem_mlir.kernels.cpu.plan import CpuVectors
from smartmem_mlir.transforms.computed_reads import Computation, ComputedRead
from smartmem_mlir.transforms.contraction_group import Read
from smartmem_mlir.transforms.linear_attention_epilogue import Column
from smartmem_mlir.transforms.linear_attention_group import LinearAttentionGroup

CACHE_BYTES = 24 * 1024
"""For keys and values that are laid out at a time: half of a first-level cache."""

SCRATCH_BYTES = 56 * 1024
"""Stack that a kernel may use."""

FEWEST_KEYS = 8
"""Of a block, unless there are fewer: for each the state is read and written."""

WORK_TO_LAY_OUT = 4
"""Multiply-adds that laying out an element costs."""


@dataclass(frozen=True)
class Piece:
    """A part of a matrix, read in one way.

    Args:
        conditions: For which matrices: each number, over (outer, ...), must be at least the second and less than the
            third.
        rows: First row and the one after the last.
        columns: First column and the one after the last.
        source: Where the elements are, or the number that all of them are.
        steps: What is computed from them.
    """

    conditions: tuple[tuple[Expr, int, int], ...]
    rows: tuple[int, int]
    columns: tuple[int, int]
    source: Operand | float
    steps: tuple[Computation, ...]


@dataclass(frozen=True)
class Matrix:
    """Queries, keys or values.

    Args:
        row: Which of the five dimensions counts rows.
        column: Which counts columns.
        pieces: By first column.
    """

    row: int
    column: int
    pieces: tuple[Piece, ...]

    @property
    def sources(self) -> list[Source]:
        """Tensors that are read."""
        return [piece.source.source for piece in self.pieces if isinstance(piece.source, Operand)]


EpilogueArgument: TypeAlias = Operand | float | int | Column
"""Of a step: elements of a tensor, a number, (int) the result of a step, or a column of the product."""


@dataclass(frozen=True)
class PlannedStep:
    """An elementwise operation behind the products.

    Args:
        body: Its scalar computation.
        arguments: For each argument of the body; a column is counted over all dimensions of the values.
    """

    body: ir.Block
    arguments: tuple[EpilogueArgument, ...]


@dataclass(frozen=True)
class LinearAttentionPlan:
    """A group with its tiles and addresses.

    Args:
        counts: Extents of (outer, row, key, depth, value).
        query: Matrix [row, depth].
        key: Matrix [key, depth].
        value: Matrix [key, value].
        first_column: Where the part of the product begins that the result is computed from.
        columns: Elements of that part.
        epilogue: Steps from the product to the result.
        output: Where the result is written, over (outer, row, 0, 0, column of the part).
        lanes: Elements of a vector.
        vectors: Vectors of a tile, side by side.
        depth_tile: Rows of the state that are computed at a time.
        row_tile: Rows of the product that are computed at a time.
        block_keys: Keys that are laid out at a time.
        block_outer: Matrices that a workgroup computes.
    """

    counts: tuple[int, int, int, int, int]
    query: Matrix
    key: Matrix
    value: Matrix
    first_column: int
    columns: int
    epilogue: tuple[PlannedStep, ...]
    output: Operand
    lanes: int
    vectors: int
    depth_tile: int
    row_tile: int
    block_keys: int
    block_outer: int

    @property
    def workgroups(self) -> int:
        """How many there are."""
        return -(-self.counts[OUTER] // self.block_outer)

    @property
    def depth_pitch(self) -> int:
        """Elements between rows of queries and keys that are laid out."""
        return padded(self.counts[DEPTH], self.lanes)

    @property
    def value_pitch(self) -> int:
        """Elements between rows of values, of the state and of the product."""
        return padded(self.counts[VALUE], self.lanes)

    @property
    def stack(self) -> int:
        """Bytes of it that the kernel takes."""
        keys = self.block_keys * (self.depth_pitch + self.value_pitch)
        rows = self.row_tile * (self.depth_pitch + self.value_pitch)
        return 4 * (keys + rows + self.counts[DEPTH] * self.value_pitch)

    @property
    def work(self) -> float:
        """Of one matrix, in multiply-adds."""
        _, rows, keys, depth, _ = self.counts
        laid_out = (rows + keys) * (self.depth_pitch + self.value_pitch)
        return float((rows + keys) * depth * self.value_pitch + laid_out * WORK_TO_LAY_OUT)

    @property
    def sources(self) -> tuple[Source, ...]:
        """Tensors that the kernel reads, each once."""
        found = [*self.query.sources, *self.key.sources, *self.value.sources]
        found += [a.source for step in self.epilogue for a in step.arguments if isinstance(a, Operand)]
        return tuple(dict.fromkeys(found))


def plan_linear_attention(group: LinearAttentionGroup, cpu: CpuVectors) -> LinearAttentionPlan | None:
    """Chooses blocks and tiles; None when a state is too large for the stack, or parts are no blocks of a matrix."""
    parts = (group.outer, group.queries, group.keys, group.depth, group.values)
    space = Space(group.extents, parts, group.members[0])
    result_space = Space(group.result_extents, parts, group.members[0])
    _, rows, keys, depth, values = space.counts
    first_column = _first_column(group)
    output = result_space.operand(group.output)
    if first_column is None or output.stride(VALUE) is None:
        return None
    query, key, value = (
        _matrix(group, factor, space, row, column)
        for factor, row, column in ((group.query, ROW, DEPTH), (group.key, KEY, DEPTH), (group.value, KEY, VALUE))
    )
    if query is None or key is None or value is None:
        return None
    lanes = cpu.lanes
    while lanes > 4 and lanes // 2 >= max(depth, values):
        lanes //= 2
    vectors = min(MAX_LANE_VECTORS if cpu.registers >= 32 else 2, -(-values // lanes))
    spare = vectors + (0 if cpu.lanes >= 16 else 1)
    most = max(1, (cpu.registers - spare) // vectors)
    plan = LinearAttentionPlan(
        counts=space.counts,
        query=query,
        key=key,
        value=value,
        first_column=first_column,
        columns=result_space.counts[VALUE],
        epilogue=_epilogue(group, result_space),
        output=output,
        lanes=lanes,
        vectors=vectors,
        depth_tile=even(depth, most),
        row_tile=even(rows, most),
        block_keys=0,
        block_outer=1,
    )
    bytes_of_key = 4 * (plan.depth_pitch + plan.value_pitch)
    fitting = min(CACHE_BYTES, SCRATCH_BYTES - plan.stack) // bytes_of_key
    if fitting < min(keys, FEWEST_KEYS):
        return None
    plan = replace(plan, block_keys=even(keys, fitting))
    work = plan.work
    block_outer, _ = choose_blocks((space.counts[OUTER], 1), lambda matrices, _: matrices * work)
    return replace(plan, block_outer=block_outer)


def _first_column(group: LinearAttentionGroup) -> int | None:
    """Where the part of a row begins that the result is computed from; None when it is not contiguous."""
    extents = [group.extents[d] for d in group.values]
    lengths = [group.result_extents[d] for d in group.values]
    ends = [start + length for start, length in zip(group.columns, lengths, strict=True)]
    found = _range(Box(group.columns, tuple(ends)), range(len(extents)), extents)
    return None if found is None else found[0]


def _range(box: Box, part: Sequence[int], extents: Sequence[int]) -> tuple[int, int] | None:
    """First position in a box and the one after the last, with some of its dimensions made one.

    Args:
        box: The box.
        part: Its dimensions, outermost first.
        extents: Those of the space that the box is in.

    Returns:
        None when positions in between are outside of the box.
    """
    cut = [k for k, d in enumerate(part) if (box.lo[d], box.hi[d]) != (0, extents[d])]
    if cut and any(box.extents[d] > 1 for d in part[: cut[-1]]):
        return None
    lengths = [extents[d] for d in part]
    first = linearize([Expr(box.lo[d]) for d in part], lengths).const
    return first, linearize([Expr(box.hi[d] - 1) for d in part], lengths).const + 1


def _matrix(group: LinearAttentionGroup, factor: ComputedRead, space: Space, row: int, column: int) -> Matrix | None:
    """A factor by pieces; None when they are no blocks of it."""
    parts = (group.outer, group.queries, group.keys, group.depth, group.values)
    inside = {*parts[OUTER], *parts[row], *parts[column]}
    pieces = []
    for part in factor.parts:
        box = part.box
        rows, columns = _range(box, parts[row], group.extents), _range(box, parts[column], group.extents)
        cut = [d for d, extent in enumerate(group.extents) if (box.lo[d], box.hi[d]) != (0, extent)]
        if rows is None or columns is None or not inside.issuperset(cut):
            return None
        conditions = tuple((space.index_of(d), box.lo[d], box.hi[d]) for d in cut if d in parts[OUTER])
        source: Operand | float
        if isinstance(part.source, Read):
            source = Operand(Source(part.source.value), space.address(part.source))
            walk = _walk(group, box, (row, rows), (column, columns))
            claim_address(group.members[0], walk, part.source, source.address)
        else:
            source = part.source
        pieces.append(Piece(conditions, rows, columns, source, part.steps))
    # What one piece writes behind its last column belongs to the next.
    return Matrix(row, column, tuple(sorted(pieces, key=lambda piece: piece.columns)))


def _walk(
    group: LinearAttentionGroup,
    box: Box,
    rows: tuple[int, tuple[int, int]],
    columns: tuple[int, tuple[int, int]],
) -> Walk:
    """The part of the kernel's space in which a piece is read: its outer dimensions one by one, rows, columns."""
    parts = (group.outer, group.queries, group.keys, group.depth, group.values)
    kernel, space = [Expr(0)] * len(parts), [Expr(0)] * len(group.extents)
    rank = len(group.outer)
    extents = [box.extents[d] for d in group.outer]
    for i, d in enumerate(group.outer):
        space[d] = dim(i) + box.lo[d]
    kernel[OUTER] = linearize([space[d] for d in group.outer], [group.extents[d] for d in group.outer])
    for axis, (number, (first, end)) in enumerate((rows, columns)):
        kernel[number] = dim(rank + axis) + first
        extents.append(end - first)
        lengths = [group.extents[d] for d in parts[number]]
        for d, expr in zip(parts[number], delinearize(kernel[number], lengths), strict=True):
            space[d] = expr
    return Walk(tuple(extents), tuple(kernel), tuple(space), group.extents)


def _epilogue(group: LinearAttentionGroup, space: Space) -> tuple[PlannedStep, ...]:
    lengths = [group.extents[d] for d in group.values]
    planned = []
    for step in group.epilogue:
        arguments: list[EpilogueArgument] = []
        for argument in step.arguments:
            if isinstance(argument, Column):
                argument = Column((linearize([Expr(at) for at in argument.at], lengths).const,))
            arguments.append(space.lanes(argument, VALUE) if isinstance(argument, Read) else argument)
        planned.append(PlannedStep(step.body, tuple(arguments)))
    return tuple(planned)
