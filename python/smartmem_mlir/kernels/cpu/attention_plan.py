"""How attention runs on a CPU: what a workgroup computes, how keys are cut into blocks, what lies on the stack.

A workgroup takes a block of query rows of some (batch, head) matrices. For each block of keys it lays K out as
[depth][keys], so that vectors hold adjacent keys, and then computes tiles of rows: scores by multiplying those vectors
with single elements of Q, the softmax over lanes, and the product with V, whose rows fill vectors as they are. When all
keys of a matrix fit on the stack there is one block; else rows keep a running maximum, sum and result (online softmax,
Milakov and Gimelshein 2018; the blocking is that of FlashAttention, Dao et al. 2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import ZERO, Dim, Expr, delinearize, dim, dims, linearize
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.kernels.address_claims import Walk, claim_address, claim_copy
from smartmem_mlir.kernels.cpu.blocks import choose_blocks
from smartmem_mlir.kernels.cpu.plan import CpuVectors
from smartmem_mlir.transforms.attention_group import AttentionGroup
from smartmem_mlir.transforms.contraction_group import Read, Step
from smartmem_mlir.transforms.view_ops import shape_of, splat_constant

OUTER, ROW, KEY, DEPTH, VALUE = range(5)
"""Dimensions that addresses are over: the matrix, the query, the key, and the columns of Q and K, and of V."""

SCRATCH_BYTES = 60 * 1024
"""Stack that a kernel may use; IREE's workers have 128 KiB, and targets/cpu.yaml lets a kernel take half of it."""

ROWS_PER_BLOCK = 64
"""Rows that should share a block of keys, which each workgroup lays out for itself."""

LAYOUT_ROWS = 4
"""Rows whose products cost as much as laying a matrix out."""

MAX_LANE_VECTORS = 4
"""Vectors of a row's scores that a tile holds."""


@dataclass(frozen=True)
class Source:
    """A tensor that the kernel reads.

    Args:
        value: The group's tensor.
        view: Of which the kernel reads this view, when the tensor itself has no adjacent lanes.
    """

    value: ir.Value
    view: View | None = None


@dataclass(frozen=True)
class Operand:
    """Elements of a tensor: its row-major position over (outer, row, key, depth, value).

    Args:
        source: The tensor.
        address: The position.
    """

    source: Source
    address: Expr

    def stride(self, d: int) -> int | None:
        """Distance of neighbours along a dimension, None when it varies."""
        coefficient = self.address.coefficient(Dim(d))
        return None if d in (self.address - dim(d) * coefficient).dims else coefficient


Argument = Operand | float | int
"""Of a step: elements of a tensor, a number, or (int) the result of a step, see `AttentionGroup`."""


@dataclass(frozen=True)
class PlannedStep:
    """An elementwise operation.

    Args:
        body: Its scalar computation.
        arguments: For each argument of the body.
    """

    body: ir.Block
    arguments: tuple[Argument, ...]


@dataclass(frozen=True)
class AttentionPlan:
    """An attention group with its tiles and addresses.

    Args:
        group: What to compute.
        counts: Extents of (outer, row, key, depth, value).
        query: Elements of Q.
        key: Elements of K.
        value: Elements of V.
        initial: What scores start from.
        scores: Steps from products to scores.
        epilogue: Steps from weighted sums to the result.
        output: Where the result is written.
        lanes: Elements of a vector.
        vectors: Vectors of a tile, side by side.
        tile_rows: Rows of a tile.
        block_outer: Matrices that a workgroup computes.
        block_rows: Rows of each that a workgroup computes.
        block_keys: Keys that are laid out at a time; all keys when they fit.
    """

    group: AttentionGroup
    counts: tuple[int, int, int, int, int]
    query: Operand
    key: Operand
    value: Operand
    initial: Argument
    scores: tuple[PlannedStep, ...]
    epilogue: tuple[PlannedStep, ...]
    output: Operand
    lanes: int
    vectors: int
    tile_rows: int
    block_outer: int
    block_rows: int
    block_keys: int

    @property
    def workgroups(self) -> tuple[int, int]:
        """Workgroups along matrices and along rows."""
        return -(-self.counts[OUTER] // self.block_outer), -(-self.counts[ROW] // self.block_rows)

    @property
    def online(self) -> bool:
        """Whether keys come in several blocks."""
        return self.block_keys < self.counts[KEY]

    @property
    def packs_key(self) -> bool:
        """Whether K must be laid out so that keys are adjacent."""
        return self.key.stride(KEY) != 1

    @property
    def packs_value(self) -> bool:
        """Whether V must be laid out so that columns are adjacent."""
        return self.value.stride(VALUE) != 1

    @property
    def sources(self) -> tuple[Source, ...]:
        """Tensors that the kernel reads, each once."""
        steps = (*self.scores, *self.epilogue)
        arguments = [self.query, self.key, self.value, self.initial, *(a for step in steps for a in step.arguments)]
        return tuple(dict.fromkeys(argument.source for argument in arguments if isinstance(argument, Operand)))


def padded(count: int, lanes: int) -> int:
    """Elements of whole vectors."""
    return -(-count // lanes) * lanes


def plan_attention(group: AttentionGroup, cpu: CpuVectors) -> AttentionPlan | None:
    """Chooses blocks and tiles; None when a row's columns are too many for the stack."""
    parts = (group.outer, group.queries, group.keys, group.depth, group.values)
    space = Space(group.extents, parts, group.members[0])
    _, rows, keys, _, values = space.counts
    lanes = cpu.lanes
    while lanes > 4 and lanes // 2 >= max(keys, values):
        lanes //= 2
    vectors = MAX_LANE_VECTORS if cpu.registers >= 32 else 2
    # Beside the sums, a tile holds vectors of keys, and one of a repeated element unless the machine repeats an element
    # of memory as it multiplies (AVX-512).
    spare = vectors + (0 if cpu.lanes >= 16 else 1)
    tile_rows = even(rows, max(1, min((cpu.registers - spare) // vectors, 7)))
    key, value = space.operand(group.key), space.operand(group.value)
    blocks = _blocks(space.counts, lanes, vectors, tile_rows, key.stride(KEY) != 1, value.stride(VALUE) != 1)
    if blocks is None:
        return None
    block_outer, block_rows, block_keys = blocks
    output = space.operand(group.output)
    if output.stride(VALUE) is None:
        return None
    initial: Argument = group.initial if isinstance(group.initial, float) else space.lanes(group.initial, KEY)
    return AttentionPlan(
        group=group,
        counts=space.counts,
        query=space.operand(group.query),
        key=key,
        value=value,
        initial=initial,
        scores=space.steps(group.scores, KEY),
        epilogue=space.steps(group.epilogue, VALUE),
        output=output,
        lanes=lanes,
        vectors=vectors,
        tile_rows=tile_rows,
        block_outer=block_outer,
        block_rows=block_rows,
        block_keys=block_keys,
    )


def even(count: int, most: int) -> int:
    """The size of the fewest tiles of at most `most` that cover `count` with the least waste."""
    tiles = -(-count // most)
    return -(-count // tiles)


def _blocks(
    counts: Sequence[int], lanes: int, vectors: int, tile_rows: int, packs_key: bool, packs_value: bool
) -> tuple[int, int, int] | None:
    """Matrices and rows of a workgroup, and keys of a block."""
    outer, rows, keys, depth, values = counts

    def scratch(block_keys: int, block_rows: int) -> int:
        width = padded(block_keys, lanes)
        floats = width * (packs_key * depth + tile_rows) + packs_value * block_keys * padded(values, lanes)
        if block_keys < keys:
            floats += block_rows * (padded(values, lanes) + 2)
        return floats * 4

    if scratch(keys, 0) <= SCRATCH_BYTES:
        row_work = keys * (depth + values)

        def work(matrices: int, row_tiles: int) -> float:
            return matrices * (row_tiles * tile_rows + LAYOUT_ROWS) * row_work

        block_outer, row_tiles = choose_blocks((outer, -(-rows // tile_rows)), work)
        return block_outer, row_tiles * tile_rows, keys
    block_rows = min(-(-rows // tile_rows), -(-ROWS_PER_BLOCK // tile_rows)) * tile_rows
    step = lanes * vectors
    while block_rows > 0:
        fitting = [n for n in range(step, keys, step) if scratch(n, block_rows) <= SCRATCH_BYTES]
        if fitting:
            return 1, block_rows, even(-(-keys // step), fitting[-1] // step) * step
        block_rows -= tile_rows
    return None


class Space:
    """Addresses over (outer, row, key, depth, value) of what a group addresses over its own dimensions.

    Args:
        extents: The group's dimensions.
        parts: Those of them that each of the five consists of.
        op: The operation that claims are about.
    """

    def __init__(self, extents: Sequence[int], parts: Sequence[Sequence[int]], op: ir.Operation) -> None:
        self._extents = tuple(extents)
        self._parts = parts
        of = [[extents[d] for d in part] for part in parts]
        self.counts = (prod(of[0]), prod(of[1]), prod(of[2]), prod(of[3]), prod(of[4]))
        """Extents of the five."""
        self._box = Box.of(self.counts)
        self._substitution = [ZERO] * len(extents)
        for number, (part, lengths) in enumerate(zip(parts, of, strict=True)):
            for d, expr in zip(part, delinearize(dim(number), lengths), strict=True):
                self._substitution[d] = expr
        self._walk = Walk(self.counts, tuple(dims(5)), tuple(self._substitution), self._extents)
        self._op = op

    def index_of(self, d: int) -> Expr:
        """A dimension of the group over the five."""
        return self._substitution[d]

    def address(self, read: Read) -> Expr:
        """Where the elements of a tensor are; nothing is claimed."""
        return simplify_exprs([read.address.substitute(self._substitution)], self._box)[0]

    def operand(self, read: Read, view: View | None = None) -> Operand:
        """Where the elements of a tensor are."""
        address = self.address(read)
        claim_address(self._op, self._walk, read, address)
        return Operand(Source(read.value, view), address)

    def lanes(self, read: Read, lane: int) -> Argument:
        """The same with equal or adjacent lanes: the tensor itself, or a view of it."""
        number = splat_constant(read.value)
        if number is not None:
            return number
        operand = self.operand(read)
        if operand.stride(lane) in (0, 1):
            return operand
        last = self._parts[lane]
        # All dimensions of the lanes or none, so that lanes are adjacent however many dimensions they have.
        found = frozenset().union(*(expr.dims for expr in read.access), last)
        used = sorted(found, key=lambda d: (d in last, d))
        renumber = [dim(used.index(d)) if d in used else ZERO for d in range(len(self._extents))]
        extents = [self._extents[d] for d in used]
        view = View.mapped(extents, shape_of(read.value), [expr.substitute(renumber) for expr in read.access])
        position = linearize([dim(d) for d in used], extents)
        (address,) = simplify_exprs([position.substitute(self._substitution)], self._box)
        claim_copy(self._op, self._walk, read, address, view)
        return Operand(Source(read.value, view), address)

    def steps(self, steps: Sequence[Step], lane: int) -> tuple[PlannedStep, ...]:
        """Steps with the addresses of what they read."""
        planned = []
        for step in steps:
            arguments = [self.lanes(a, lane) if isinstance(a, Read) else a for a in step.arguments]
            planned.append(PlannedStep(step.body, tuple(arguments)))
        return tuple(planned)
