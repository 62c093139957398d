"""What a kernel reads and computes at once: views of several pieces, constants and elementwise operations on the way.

A factor that a kernel lays out anyway, element by element, may be stacked from several tensors, be padded with numbers
and be the result of an elementwise operation that nothing else reads: none of these has to be made first. In each box
of the iteration space such a factor is one tensor through one index map, or one number, and then a few scalar
computations. The analysis changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mlir import ir

from smartmem_mlir.index_maps.box import Box, Ranges
from smartmem_mlir.index_maps.compose import MAX_TERMS
from smartmem_mlir.index_maps.errors import IndexOverflowError
from smartmem_mlir.index_maps.expr import ZERO, Dim, Expr, term_count
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.index_maps.view import Fill
from smartmem_mlir.transforms.access_folding import reads_index
from smartmem_mlir.transforms.contraction_group import Read, feeds_only
from smartmem_mlir.transforms.structured import Access, StructuredOp, element_type, read_structured
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view, splat_constant

MOST_LEVELS = 32
"""Operations that a factor is followed through; more are a computation of their own."""


@dataclass(frozen=True)
class Computation:
    """An elementwise operation with one operand that is not a number.

    Args:
        body: Its scalar computation.
        arguments: For each input, the number that it is; None for the element.
    """

    body: ir.Block
    arguments: tuple[float | None, ...]


@dataclass(frozen=True)
class ReadPart:
    """The elements in a box of the iteration space.

    Args:
        box: Where.
        source: What is read there, over the iteration space, or the number that all of them are.
        steps: What is computed from that, in order.
    """

    box: Box
    source: Read | float
    steps: tuple[Computation, ...]


@dataclass(frozen=True)
class Level:
    """One operation on the way: what reads an element of its result reads an element of its operand instead.

    Args:
        op: A view or an elementwise operation.
        box: Where in the iteration space.
        result: How its result is read there.
        operand: How its operand is read instead, or the number in its place.
        number: Which operand that is.
        own: An elementwise operation's dimensions over the iteration space; None for a view.
    """

    op: ir.Operation
    box: Box
    result: Read
    operand: Read | float
    number: int
    own: tuple[Expr, ...] | None = None


@dataclass
class ComputedRead:
    """A factor.

    Args:
        read: The tensor, as it is given to what multiplies it.
        parts: Its elements; the boxes are disjoint and cover the iteration space.
        levels: How they were found.
    """

    read: Read
    parts: list[ReadPart] = field(default_factory=list)
    levels: list[Level] = field(default_factory=list)

    @property
    def operations(self) -> list[ir.Operation]:
        """The operations on the way, which the kernel computes itself."""
        return list(dict.fromkeys(level.op for level in self.levels))


def read_computed(space: Box, value: ir.Value, access: Access, reader: ir.Operation) -> ComputedRead:
    """Follows a value to what it is made of.

    Args:
        space: The iteration space.
        value: A tensor.
        access: Its coordinates over the iteration space.
        reader: What reads it; operations that something else reads as well are left where they are.
    """
    found = ComputedRead(Read(value, simplify_exprs(access, space)))
    _follow(found.read, space, reader, found, 0)
    return found


def _follow(read: Read, box: Box, reader: ir.Operation, found: ComputedRead, depth: int) -> None:
    """Adds the parts of what is read in a box; `depth` operations have been followed before."""
    op = defining_op(read.value) if depth < MOST_LEVELS else None
    levels = None
    if op is not None and is_view(op):
        levels = _through_view(op, read, box, reader)
    elif op is not None and (step := read_structured(op)) is not None:
        levels = _through_step(step, read, box, reader)
    if levels is None:
        found.parts.append(ReadPart(box, read, ()))
        return
    for level in levels:
        found.levels.append(level)
        first = len(found.parts)
        if isinstance(level.operand, Read):
            _follow(level.operand, level.box, reader if is_view(level.op) else level.op, found, depth + 1)
        else:
            found.parts.append(ReadPart(level.box, level.operand, ()))
        computation = _computation(level.op)
        if computation is not None:
            parts = found.parts[first:]
            found.parts[first:] = [ReadPart(part.box, part.source, (*part.steps, computation)) for part in parts]


def _through_view(op: ir.Operation, read: Read, box: Box, reader: ir.Operation) -> list[Level] | None:
    """What is read of a view's operands.

    Returns:
        None when its pieces are no boxes of the space, when indices get too long, and when something else reads a view
        of several pieces, so that it is made anyway: what others read as a padded tensor is best written as one.
    """
    view = read_view(op)
    if len(view.pieces) > 1 and not feeds_only(op, reader):
        return None
    levels = []
    for number, piece in enumerate(view.pieces):
        cut = _preimage(read.access, piece.box, box)
        if cut is None:
            return None
        if cut.is_empty:
            continue
        if isinstance(piece.source, Fill):
            levels.append(Level(op, cut, read, float(piece.source.value), number))
            continue
        try:
            access = simplify_exprs([expr.substitute(read.access) for expr in piece.exprs], cut)
        except IndexOverflowError:
            return None
        if term_count(access) > MAX_TERMS:
            return None
        levels.append(Level(op, cut, read, Read(op.operands[piece.source], access), piece.source))
    return levels


def _preimage(access: Access, wanted: Box, box: Box) -> Box | None:
    """The part of a box in which coordinates stay within `wanted`; None when that is no box."""
    ranges = Ranges(box)
    for expr, lo, hi in zip(access, wanted.lo, wanted.hi, strict=True):
        first, last = ranges.of(expr)
        if lo <= first and last < hi:
            continue
        if last < lo or hi <= first:
            return Box(box.lo, box.lo)
        atom = expr.single_atom
        if not isinstance(atom, Dim):
            return None
        d = atom.index
        box = box.with_axis(d, max(lo, box.lo[d]), min(hi, box.hi[d]))
    return box


def _through_step(step: StructuredOp, read: Read, box: Box, reader: ir.Operation) -> list[Level] | None:
    """What is read of an elementwise operation's operand; None when the operation is not computed on reading."""
    computation = _computation(step.op)
    own = None if computation is None else dims_from(step.output_accesses[0], read.access, step.extents)
    if computation is None or own is None or not feeds_only(step.op, reader):
        return None
    number = computation.arguments.index(None)
    access = simplify_exprs([expr.substitute(own) for expr in step.input_accesses[number]], box)
    return [Level(step.op, box, read, Read(step.inputs[number], access), number, tuple(own))]


def _computation(op: ir.Operation) -> Computation | None:
    """An operation as one of a single element; None for views and all others."""
    step = read_structured(op)
    if step is None or not step.is_elementwise or len(step.outputs) != 1 or reads_index(step):
        return None
    if next(iter(step.body.arguments[len(step.inputs)].uses), None) is not None:
        return None
    if not all(isinstance(element_type(value.type), ir.F32Type) for value in (*step.inputs, *op.results)):
        return None
    numbers = tuple(splat_constant(value) for value in step.inputs)
    return Computation(step.body, numbers) if numbers.count(None) == 1 else None


def dims_from(placed: Access, access: Access, extents: Sequence[int]) -> list[Expr] | None:
    """The dimensions of an operation that writes an element at `placed`, when that element is read at `access`.

    Returns:
        None when the element does not say all of them.
    """
    own: list[Expr | None] = [ZERO if extent == 1 else None for extent in extents]
    for coordinate, expr in zip(placed, access, strict=True):
        atom = coordinate.single_atom
        if isinstance(atom, Dim):
            own[atom.index] = expr
    return [expr for expr in own if expr is not None] if None not in own else None
