"""A contraction and the elementwise operations after it, read as one kernel.

Every tensor of the group is addressed over the contraction's own iteration space: what an operation after it reads or
writes through views becomes index arithmetic of the kernel, so that a residual addition which reads windows back, or a
projection whose rows are gathered, needs no tensor of its own. The analysis decides nothing and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.errors import NotInvertibleError
from smartmem_mlir.index_maps.expr import ZERO, Dim, Expr, linearize
from smartmem_mlir.index_maps.inverse import inverse
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.index_maps.view import Fill, View
from smartmem_mlir.transforms.access_folding import reads_index, through_views
from smartmem_mlir.transforms.ir_walk import users
from smartmem_mlir.transforms.structured import Access, StructuredOp, read_structured
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view, shape_of


@dataclass(frozen=True)
class Read:
    """An element that the kernel reads or writes.

    Args:
        value: The tensor, or a scalar.
        access: Its coordinates over the contraction's dimensions.
    """

    value: ir.Value
    access: Access

    @property
    def address(self) -> Expr:
        """Row-major position over the contraction's dimensions, as written: not simplified."""
        return linearize(self.access, _shape(self.value))


@dataclass(frozen=True)
class Segments:
    """A factor that is stacked from several tensors along a dimension that is summed over.

    The sum over the stack is the sum over its parts, one after the other: no kernel has to stack them.

    Args:
        view: The view that stacks them; None when there is one tensor, which `reads` then holds alone.
        dimension: The dimension that is cut; None with one tensor.
        starts: Where each part begins in it.
        reads: How each part is read, over the whole iteration space.
    """

    view: ir.Operation | None
    dimension: int | None
    starts: tuple[int, ...]
    reads: tuple[Read, ...]


@dataclass(frozen=True)
class Scale:
    """Numbers that a factor is multiplied by, each of them for all elements with the same place in the reduction.

    A sum of products may then multiply either factor by them: no kernel has to compute the scaled one.

    Args:
        op: The multiplication.
        read: The numbers.
    """

    op: ir.Operation
    read: Read


@dataclass(frozen=True)
class Step:
    """One elementwise operation after the contraction.

    Args:
        body: Its scalar computation.
        arguments: For each argument of the body: what is read, or the number of an earlier step's result (0 is the
            contraction's).
    """

    body: ir.Block
    arguments: tuple[Read | int, ...]


@dataclass(frozen=True)
class ContractionGroup:
    """A kernel around one contraction.

    Args:
        root: The contraction.
        lhs: First factor, in one or more parts.
        rhs: Second factor.
        scale: What the products are multiplied by before they are summed, if anything.
        initial: What the sum starts from: a number, or a tensor to read.
        steps: What is computed from the sum, in order; the last step's result is written.
        output: The value that the kernel computes and where each element of it is written.
        border: Parts of that value around what is computed, each with the number that fills it.
        members: The operations that the kernel replaces, in program order.
    """

    root: StructuredOp
    lhs: Segments
    rhs: Read
    scale: Scale | None
    initial: float | Read
    steps: tuple[Step, ...]
    output: Read
    border: tuple[tuple[Box, float], ...]
    members: tuple[ir.Operation, ...]


@dataclass
class Growth:
    """A group while it grows: where each of its values stands over the contraction's dimensions.

    Args:
        space: The contraction's dimensions.
        placed: Coordinates of each value of the group over them.
        number: What steps call each value.
        steps: The operations so far.
    """

    space: Box
    placed: dict[ir.Value, Access] = field(default_factory=dict)
    number: dict[ir.Value, int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)


def start_growth(op: ir.Operation) -> Growth | None:
    """A group of one contraction; None for other operations and for contractions that kernels do not take."""
    root = read_structured(op)
    if root is None or contraction_factors(root) is None or reads_index(root) or initial_value(root) is None:
        return None
    growth = Growth(Box.of(root.extents))
    growth.placed[op.results[0]] = simplify_exprs(root.output_accesses[0], growth.space)
    growth.number[op.results[0]] = 0
    return growth


def read_contraction_group(members: Sequence[ir.Operation]) -> ContractionGroup | None:
    """Reads operations as one kernel.

    Args:
        members: A contraction, then operations on its result: elementwise ones and views, in program order. Views that
            only they read may be among them or not.

    Returns:
        None when the first is no contraction, or a later one does not compute one element from each of the sums.
    """
    growth = start_growth(members[0])
    root = read_structured(members[0])
    factors = None if root is None else contraction_factors(root)
    initial = None if root is None else initial_value(root)
    if growth is None or root is None or factors is None or initial is None:
        return None
    last = root.op.results[0]
    border: tuple[tuple[Box, float], ...] = ()
    for op in members[1:]:
        if is_view(op):
            found = bordered(growth, op) if op.operands[0] == last else None
            if found is not None:
                growth.placed[op.results[0]], border = found
                last = op.results[0]
            continue
        step = read_structured(op)
        if border or step is None or not add_step(growth, step):
            return None
        last = op.results[0]
    lhs, rhs = (read_behind_views(growth.space, root.inputs[i], root.input_accesses[i]) for i in factors)
    scale = None
    if (scaled := _scaled(root, growth.space, lhs)) is not None:
        lhs, scale = scaled
    parts = _segments(root, growth.space, lhs)
    output = Read(last, growth.placed[last])
    return ContractionGroup(root, parts, rhs, scale, initial, tuple(growth.steps), output, border, tuple(members))


def whole(read: Read) -> Segments:
    """A factor that is one tensor."""
    return Segments(None, None, (0,), (read,))


def _scaled(root: StructuredOp, space: Box, factor: Read) -> tuple[Read, Scale] | None:
    """What a factor is before a multiplication that nothing else reads, and what that multiplies it by."""
    op = defining_op(factor.value)
    step = None if op is None else read_structured(op)
    if op is None or step is None or not step.is_elementwise or len(step.inputs) != 2 or not feeds_only(op, root.op):
        return None
    if [inner.operation.name for inner in step.body.operations] != ["arith.mulf", "linalg.yield"]:
        return None
    numbers = [
        ir.BlockArgument(operand).arg_number if isinstance(operand.owner, ir.Block) else -1
        for operand in step.body.operations[0].operation.operands
    ]
    atoms = [expr.single_atom for expr in step.output_accesses[0]]
    if sorted(numbers) != [0, 1] or len(atoms) != len(step.extents):
        return None
    own = {atom.index: expr for atom, expr in zip(atoms, factor.access, strict=True) if isinstance(atom, Dim)}
    if len(own) != len(step.extents):
        return None
    dims = [own[d] for d in range(len(step.extents))]
    reads = [
        read_behind_views(space, value, simplify_exprs([expr.substitute(dims) for expr in access], space))
        for value, access in zip(step.inputs, step.input_accesses, strict=True)
    ]
    for scaled, numbers_read in (reads, reads[::-1]):
        used = frozenset().union(*(expr.dims for expr in numbers_read.access))
        if used and all(root.reductions[d] for d in used):
            return scaled, Scale(op, numbers_read)
    return None


def feeds_only(op: ir.Operation, reader: ir.Operation) -> bool:
    return all(user == reader or (is_view(user) and feeds_only(user, reader)) for user in users(op.results[0]))


def _segments(root: StructuredOp, space: Box, read: Read) -> Segments:
    """The parts of a factor that a view stacks along a reduction; the factor as it is when it is none of that kind."""
    op = defining_op(read.value)
    if op is None or not is_view(op):
        return whole(read)
    view = read_view(op)
    cut = {
        axis
        for piece in view.pieces
        for axis, extent in enumerate(view.shape)
        if (piece.box.lo[axis], piece.box.hi[axis]) != (0, extent)
    }
    if len(view.pieces) < 2 or len(cut) != 1 or any(isinstance(piece.source, Fill) for piece in view.pieces):
        return whole(read)
    (axis,) = cut
    atom = read.access[axis].single_atom
    if not isinstance(atom, Dim) or not root.reductions[atom.index] or root.extents[atom.index] != view.shape[axis]:
        return whole(read)
    parts = []
    for piece in sorted(view.pieces, key=lambda piece: piece.box.lo[axis]):
        assert isinstance(piece.source, int)
        inside = space.with_axis(atom.index, piece.box.lo[axis], piece.box.hi[axis])
        access = simplify_exprs([expr.substitute(read.access) for expr in piece.exprs], inside)
        parts.append((piece.box.lo[axis], read_behind_views(inside, op.operands[piece.source], access)))
    return Segments(op, atom.index, tuple(start for start, _ in parts), tuple(part for _, part in parts))


def is_bordered(op: ir.Operation) -> bool:
    """Whether the operation is a view that puts constants around all of one tensor, as padding does."""
    if not is_view(op) or len(op.operands) != 1:
        return False
    view = read_view(op)
    reads = [piece for piece in view.pieces if isinstance(piece.source, int)]
    return len(reads) == 1 < len(view.pieces) and reads[0].box.volume == prod(view.operands[0])


def bordered(growth: Growth, op: ir.Operation) -> tuple[Access, tuple[tuple[Box, float], ...]] | None:
    """Where the elements of a view's source stand in it, and the boxes of constants around them."""
    if not is_bordered(op):
        return None
    view = read_view(op)
    (piece,) = (piece for piece in view.pieces if isinstance(piece.source, int))
    try:
        backward = inverse(piece.map, Box.of(view.operands[0]))
    except NotInvertibleError:
        return None
    placed = [expr.substitute(growth.placed[op.operands[0]]) for expr in backward.exprs]
    border = [(piece.box, float(piece.source.value)) for piece in view.pieces if isinstance(piece.source, Fill)]
    return simplify_exprs(placed, growth.space), tuple(border)


def contraction_factors(op: StructuredOp) -> tuple[int, int] | None:
    """The inputs that a contraction multiplies, None for other operations.

    The body must be exactly a product and a sum, perhaps of factors that are widened to the type of the sum.
    """
    if not op.is_contraction or len(op.inputs) != 2:
        return None
    names = [inner.operation.name for inner in op.body.operations]
    return (0, 1) if [n for n in names if n != "arith.extf"] == ["arith.mulf", "arith.addf", "linalg.yield"] else None


def initial_value(root: StructuredOp) -> float | Read | None:
    op = defining_op(root.outputs[0])
    if op is not None and op.name == "linalg.fill":
        constant = defining_op(op.operands[0])
        if constant is not None and constant.name == "arith.constant":
            return float(constant.attributes["value"].value)
        return None
    if op is not None and op.name == "tensor.empty":
        return None
    return read_behind_views(Box.of(root.extents), root.outputs[0], root.output_accesses[0])


def add_step(growth: Growth, step: StructuredOp) -> bool:
    """Adds an elementwise operation; False when its elements are not one to one with the sums."""
    if not step.is_elementwise or len(step.outputs) != 1 or reads_index(step):
        return False
    own = own_dims(growth, step)
    if own is None:
        return False
    arguments: list[Read | int] = []
    for value, access in zip(step.inputs, step.input_accesses, strict=True):
        wanted = simplify_exprs([expr.substitute(own) for expr in access], growth.space)
        inner, read = through_views(value, wanted, growth.space.extents)
        if inner in growth.placed:
            if read != growth.placed[inner]:
                return False
            arguments.append(growth.number[inner])
        else:
            arguments.append(Read(inner, read))
    if next(iter(step.body.arguments[len(step.inputs)].uses), None) is not None:
        return False
    result = step.op.results[0]
    growth.placed[result] = simplify_exprs([e.substitute(own) for e in step.output_accesses[0]], growth.space)
    growth.steps.append(Step(step.body, tuple(arguments)))
    growth.number[result] = len(growth.steps)
    return True


def own_dims(growth: Growth, step: StructuredOp) -> list[Expr] | None:
    """Each dimension of the operation over the contraction's, from an operand that the group computes."""
    for value, access in zip(step.inputs, step.input_accesses, strict=True):
        placed = placement(growth, value)
        if placed is None:
            continue
        own: list[Expr | None] = [ZERO if extent == 1 else None for extent in step.extents]
        for coordinate, expr in zip(access, placed, strict=True):
            atom = coordinate.single_atom
            if isinstance(atom, Dim):
                own[atom.index] = expr
        if all(expr is not None for expr in own):
            return [expr for expr in own if expr is not None]
    return None


def placement(growth: Growth, value: ir.Value) -> Access | None:
    """Where an element of a value that the group computes, or of a view of it, stands; None for other values."""
    chain: list[View] = []
    while value not in growth.placed:
        op = defining_op(value)
        if op is None or not is_view(op) or read_view(op).single_map is None:
            return None
        chain.append(read_view(op))
        value = op.operands[0]
    placed: Access | None = growth.placed[value]
    for view in reversed(chain):
        placed = _inverted(view, placed, growth.space) if placed is not None else None
    return placed


def _inverted(view: View, placed: Access, space: Box) -> Access | None:
    """Where an element at `placed` of the view's source stands in the view; None when it is there not exactly once."""
    single = view.single_map
    if single is None or view.box.volume != prod(view.operands[0]):
        return None
    try:
        backward = inverse(single, Box.of(view.operands[0]))
    except NotInvertibleError:
        return None
    return simplify_exprs([expr.substitute(placed) for expr in backward.exprs], space)


def read_behind_views(space: Box, value: ir.Value, access: Access) -> Read:
    inner, read = through_views(value, access, space.extents)
    return Read(inner, read)


def _shape(value: ir.Value) -> tuple[int, ...]:
    return shape_of(value) if isinstance(value.type, ir.RankedTensorType) else ()
