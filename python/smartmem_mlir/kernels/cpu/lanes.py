"""Rows of f32 cut into vectors, and what kernels do with them: load, store, reduce, transpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref, scf, vector

Combine = Callable[[ir.Value, ir.Value], ir.Value]

FEWEST_LANES = 4
"""Lanes of the smallest vector; fewer elements are masked."""


LINE_ELEMENTS = 16
"""f32 elements of a cache line."""
IN_SECOND_LEVEL = 2
"""How near a prefetch brings its line, from 0, not to stay, to 3, the first-level cache."""


@dataclass(frozen=True)
class Part:
    """One vector of a row.

    Args:
        offset: Its first element.
        lanes: Lanes of the vector.
        valid: Lanes that the row has; the others are masked.
    """

    offset: int
    lanes: int
    valid: int

    @property
    def is_whole(self) -> bool:
        """Whether no lane is masked."""
        return self.valid == self.lanes


def cut(count: int, lanes: int) -> list[Part]:
    """A row as vectors; the last is the smallest that holds what is left, because a wide one costs more."""
    parts = []
    for offset in range(0, count, lanes):
        valid = min(lanes, count - offset)
        width = lanes
        while width > FEWEST_LANES and width // 2 >= valid:
            width //= 2
        parts.append(Part(offset, width, valid))
    return parts


def cut_width(count: int, lanes: int) -> int:
    """Lanes of the vectors of a row, those that :func:`cut` masks included."""
    return sum(part.lanes for part in cut(count, lanes))


def index(value: int) -> ir.Value:
    """An index constant."""
    return arith.constant(ir.IndexType.get(), value)


def add(a: ir.Value, b: ir.Value | int) -> ir.Value:
    """a + b on indices."""
    if isinstance(b, int):
        return a if b == 0 else arith.addi(a, index(b))
    return arith.addi(a, b)


def scaled(a: ir.Value, factor: int) -> ir.Value:
    """a * factor on indices."""
    return a if factor == 1 else arith.muli(a, index(factor))


def block_range(block: ir.Value, size: int, total: int) -> tuple[ir.Value, ir.Value]:
    """First index of a block of an axis and the one after its last: the last block may be shorter."""
    start = scaled(block, size)
    end = add(start, size)
    return start, end if total % size == 0 else arith.minsi(end, index(total))


def vector_type(lanes: int, element: ir.Type | None = None) -> ir.VectorType:
    """A vector of f32, or of another type."""
    return ir.VectorType.get([lanes], element or ir.F32Type.get())


def number(value: float) -> ir.Value:
    """An f32 constant."""
    return arith.constant(ir.F32Type.get(), value)


def splat(value: ir.Value | float, lanes: int) -> ir.Value:
    """A scalar in every lane."""
    scalar = number(value) if isinstance(value, float) else value
    return vector.broadcast(vector_type(lanes, scalar.type), scalar)


def mask(part: Part) -> ir.Value:
    """True in the lanes that the row has."""
    return vector.create_mask(vector_type(part.lanes, ir.IntegerType.get_signless(1)), [index(part.valid)])


def load(buffer: ir.Value, at: ir.Value, part: Part) -> ir.Value:
    """The vector that starts at `at`; masked lanes are 0."""
    type_ = vector_type(part.lanes, buffer.type.element_type)
    if part.is_whole:
        return vector.load(type_, buffer, [at])
    zero = vector.broadcast(type_, arith.constant(type_.element_type, 0.0))
    return vector.maskedload(type_, buffer, [at], mask(part), zero)


def store(value: ir.Value, buffer: ir.Value, at: ir.Value, part: Part) -> None:
    """Writes the vector's valid lanes from `at` on."""
    if part.is_whole:
        vector.StoreOp(value, buffer, [at])
    else:
        vector.MaskedStoreOp(buffer, [at], mask(part), value)


def prefetch(buffer: ir.Value, at: ir.Value, count: int) -> None:
    """Asks for so many f32 from `at` on; they need not be inside the buffer."""
    for start in range(0, count, LINE_ELEMENTS):
        memref.PrefetchOp(buffer, [add(at, start)], False, IN_SECOND_LEVEL, True)


def maximum(a: ir.Value, b: ir.Value) -> ir.Value:
    """The greater one; b when one of them is nan (one instruction on x86, unlike an IEEE maximum)."""
    return arith.select(arith.cmpf(arith.CmpFPredicate.OGT, a, b), a, b)


def reduce(vectors: Sequence[ir.Value], combine: Combine) -> ir.Value:
    """One scalar of all lanes of vectors, which may have different numbers of lanes (powers of two)."""
    by_lanes: dict[int, ir.Value] = {}
    for value in vectors:
        lanes = value.type.shape[0]
        by_lanes[lanes] = combine(by_lanes[lanes], value) if lanes in by_lanes else value
    lanes = max(by_lanes)
    total = by_lanes[lanes]
    while lanes > 1:
        lanes //= 2
        low, high = (vector.shuffle(total, total, list(range(start, start + lanes))) for start in (0, lanes))
        total = combine(low, high)
        if lanes in by_lanes:
            total = combine(total, by_lanes[lanes])
    return vector.extract(total, [], [0])


def scratch(count: int) -> ir.Value:
    """f32 memory on the stack, as a one-dimensional memref: of the whole kernel, also where a loop asks for it.

    An allocation inside a loop would be one for each of its trips.
    """
    block = ir.InsertionPoint.current.block
    while block.owner.operation.name != "func.func":
        block = block.owner.operation.block
    with ir.InsertionPoint.at_block_begin(block):
        return memref.AllocaOp(ir.MemRefType.get([count], ir.F32Type.get()), [], []).result


def loop(
    first: ir.Value,
    end: ir.Value,
    step: int,
    carried: Sequence[ir.Value],
    body: Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]],
) -> list[ir.Value]:
    """`scf.for` from `first` to `end`; the body gives the next values of what it carries."""
    made = scf.ForOp(first, end, index(step), list(carried))
    with ir.InsertionPoint(made.body):
        scf.YieldOp(list(body(made.induction_variable, list(made.inner_iter_args))))
    return list(made.results)


def tiled(count: int, size: int, body: Callable[[ir.Value, int], None]) -> None:
    """A loop over tiles of `size` and, behind it, the smaller tile that is left; the body gets first index and size."""
    rest = count % size

    def whole(first: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        body(first, size)
        return []

    loop(index(0), index(count - rest), size, [], whole)
    if rest:
        body(index(count - rest), rest)


def transpose(rows: Sequence[ir.Value]) -> list[ir.Value]:
    """The columns of a square of 4, 8 or 16 vectors.

    First squares of four within 128-bit lanes, then whole 128-bit lanes: every step is one shuffle of two registers on
    x86 as on NEON.
    """
    lanes = len(rows)
    groups = lanes // 4
    # columns[c][g]: in 128-bit lane q, elements of rows 4g..4g+3 in column 4q + c.
    columns: list[list[ir.Value]] = [[] for _ in range(4)]
    for g in range(groups):
        a, b, c, d = rows[4 * g : 4 * g + 4]
        low, high = ([0, lanes, 1, lanes + 1], [2, lanes + 2, 3, lanes + 3])
        halves = [_in_lanes(x, y, pattern, groups) for x, y in ((a, b), (c, d)) for pattern in (low, high)]
        first, second = ([0, 1, lanes, lanes + 1], [2, 3, lanes + 2, lanes + 3])
        for i, (x, y) in enumerate(((halves[0], halves[2]), (halves[1], halves[3]))):
            columns[2 * i].append(_in_lanes(x, y, first, groups))
            columns[2 * i + 1].append(_in_lanes(x, y, second, groups))
    result: list[ir.Value | None] = [None] * lanes
    for c in range(4):
        for q, column in enumerate(_transpose_lanes(columns[c])):
            result[4 * q + c] = column
    return [column for column in result if column is not None]


def _in_lanes(x: ir.Value, y: ir.Value, pattern: Sequence[int], groups: int) -> ir.Value:
    """A shuffle that does the same in each 128-bit lane."""
    return vector.shuffle(x, y, [p + 4 * q for q in range(groups) for p in pattern])


def _transpose_lanes(rows: Sequence[ir.Value]) -> list[ir.Value]:
    """The same for vectors whose elements are 128-bit lanes: 1, 2 or 4 of them."""
    groups = len(rows)
    if groups == 1:
        return list(rows)

    def pick(x: ir.Value, y: ir.Value, of_x: Sequence[int], of_y: Sequence[int]) -> ir.Value:
        wanted = [*of_x, *(groups + q for q in of_y)]
        return vector.shuffle(x, y, [4 * q + i for q in wanted for i in range(4)])

    if groups == 2:
        return [pick(rows[0], rows[1], [q], [q]) for q in range(2)]
    even = [pick(rows[i], rows[i + 1], [0, 2], [0, 2]) for i in (0, 2)]
    odd = [pick(rows[i], rows[i + 1], [1, 3], [1, 3]) for i in (0, 2)]
    return [pick(pair[0], pair[1], half, half) for half in ([0, 2], [1, 3]) for pair in (even, odd)]


def apply_body(body: ir.Block, arguments: Sequence[ir.Value], lanes: int) -> ir.Value:
    """A scalar computation in every lane.

    Args:
        body: A linalg body that yields one value.
        arguments: Vectors, one per argument of the body that is used.
        lanes: Their lanes.
    """
    mapping: dict[ir.Value, ir.Value] = dict(zip(body.arguments, arguments, strict=False))

    def value_of(value: ir.Value) -> ir.Value:
        if value in mapping:
            return mapping[value]
        constant = arith.constant(value.type, value.owner.operation.attributes["value"])
        return vector.broadcast(vector_type(lanes, value.type), constant)

    for inner in body.operations:
        op = inner.operation
        if op.name == "arith.constant":
            continue
        operands = [value_of(operand) for operand in op.operands]
        if op.name == "linalg.yield":
            return operands[0]
        attributes = {name: op.attributes[name] for name in op.attributes}
        types = [vector_type(lanes, result.type) for result in op.results]
        made = ir.Operation.create(op.name, types, operands, attributes)
        mapping.update(zip(op.results, made.results, strict=True))
    raise AssertionError("a linalg body ends in linalg.yield")
