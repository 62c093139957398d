"""What is claimed about groups: how each operation of a group reads and writes over the group's iteration space.

A group is addressed over the iteration space of its first operation. Every other one computes in a space of its own;
that its indices there, and what it reads through views, are what the group takes them for is claimed here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from mlir import ir

from smartmem_mlir.index_maps.expr import Dim, dim
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.transforms.access_folding import through_views
from smartmem_mlir.transforms.attention_group import AttentionGroup, AttentionReader
from smartmem_mlir.transforms.claims import access_view, claim, is_recorded, views_between
from smartmem_mlir.transforms.contraction_group import (
    ContractionGroup,
    Growth,
    Read,
    Scale,
    add_step,
    is_bordered,
    own_dims,
    start_growth,
)
from smartmem_mlir.transforms.row_group import Kind, RowGroup, RowGrowth
from smartmem_mlir.transforms.structured import Access, StructuredOp, read_structured
from smartmem_mlir.transforms.view_ops import is_view, read_view, shape_of


def claim_contraction(group: ContractionGroup) -> None:
    """Claims what a contraction group is read as."""
    growth = start_growth(group.root.op) if is_recorded() else None
    if growth is None:
        return
    root, extents = group.root, group.root.extents
    reads = [group.rhs, *(group.lhs.reads if group.lhs.view is None else ())]
    for value, access in zip(root.inputs, root.input_accesses, strict=True):
        read = _read_of(value, access, reads, growth)
        if read is not None:
            _claim_read(root.op, extents, [access_view(extents, shape_of(value), access)], value, read)
    _claim_stack(group)
    if group.scale is not None:
        _claim_scale(group, group.scale, growth)
    for op in group.members[1:]:
        step = read_structured(op)
        if step is not None:
            _claim_step(op, step, growth, partial(add_step, growth, step))
        elif is_bordered(op) and op.results[0] == group.output.value:
            _claim_border(op, growth, group.output)


def _claim_scale(group: ContractionGroup, scale: Scale, growth: Growth) -> None:
    """What a multiplication of a factor reads."""
    step, root = read_structured(scale.op), group.root
    assert step is not None, "the group has been read"
    result = scale.op.results[0]
    number = next((i for i, value in enumerate(root.inputs) if _is_behind(value, result)), None)
    if number is None:
        return
    value, access = root.inputs[number], root.input_accesses[number]
    _, read = through_views(value, simplify_exprs(access, growth.space), root.extents)
    _claim_read(scale.op, root.extents, [access_view(root.extents, shape_of(value), access)], value, Read(result, read))
    growth.placed[result] = read
    place = {
        atom.index: i for i, expr in enumerate(step.output_accesses[0]) if isinstance(atom := expr.single_atom, Dim)
    }
    own = [read[place[d]] for d in range(len(step.extents))]
    entered = access_view(root.extents, step.extents, own)
    for operand, operand_access in zip(step.inputs, step.input_accesses, strict=True):
        for found in (scale.read, *group.lhs.reads):
            if _is_behind(operand, found.value):
                chain = [entered, access_view(step.extents, shape_of(operand), operand_access)]
                _claim_read(scale.op, root.extents, chain, operand, found)
                break


def _claim_stack(group: ContractionGroup) -> None:
    """The parts of a factor that is read from several tensors."""
    lhs, root = group.lhs, group.root
    if lhs.view is None or lhs.dimension is None:
        return
    number = list(root.inputs).index(lhs.view.results[0]) if lhs.view.results[0] in root.inputs else -1
    if number < 0:
        return
    stack = read_view(lhs.view)
    pieces = sorted(stack.pieces, key=lambda piece: piece.box.lo)
    stops = [*lhs.starts[1:], root.extents[lhs.dimension]]
    access = access_view(root.extents, stack.shape, root.input_accesses[number])
    for piece, start, stop, read in zip(pieces, lhs.starts, stops, lhs.reads, strict=True):
        assert isinstance(piece.source, int)
        moved = [dim(d) + (start if d == lhs.dimension else 0) for d in range(len(root.extents))]
        extents = [stop - start if d == lhs.dimension else extent for d, extent in enumerate(root.extents)]
        behind = views_between(lhs.view.operands[piece.source], read.value)
        after = access_view(extents, shape_of(read.value), [expr.substitute(moved) for expr in read.access])
        claim(
            root.op,
            [access_view(extents, root.extents, moved), access, stack, *behind],
            after,
            operands=[0, 0, *(piece.source for _ in behind)],
            sources=[0 if k == piece.source else -1 for k in range(len(stack.operands))],
        )


def claim_attention(group: AttentionGroup) -> None:
    """Claims what an attention group is read as."""
    reader = AttentionReader.start(group.members[0]) if is_recorded() else None
    if reader is None:
        return
    root, extents = reader.root, reader.root.extents
    for value, access in zip(root.inputs, root.input_accesses, strict=True):
        read = _read_of(value, access, (group.query, group.key), reader.growth)
        if read is not None:
            _claim_read(root.op, extents, [access_view(extents, shape_of(value), access)], value, read)
    for op in group.members[1:]:
        step = read_structured(op)
        if step is None:
            reader.add(op)
        elif step.is_contraction:
            reader.add(op)
            _claim_weighing(step, reader, group)
        else:
            _claim_step(op, step, reader.growth if reader.tail is None else reader.tail, partial(reader.add, op))


def _claim_weighing(step: StructuredOp, reader: AttentionReader, group: AttentionGroup) -> None:
    """What the contraction of weights and values reads."""
    entered = access_view(group.extents, step.extents, reader.weighing)
    for value, access in zip(step.inputs, step.input_accesses, strict=True):
        if _is_behind(value, group.value.value):
            chain = [entered, access_view(step.extents, shape_of(value), access)]
            _claim_read(step.op, group.extents, chain, value, group.value)


def claim_rows(group: RowGroup) -> None:
    """Claims what a row group is read as."""
    reduces = any(step.kind is Kind.REDUCE for step in group.steps)
    rows = RowGrowth.start(group.members[0], reduces) if is_recorded() else None
    if rows is None:
        return
    for number, op in enumerate(group.members):
        step = read_structured(op)
        if step is not None:
            _claim_step(op, step, rows.growth, partial(rows.add, op) if number else lambda: True)
        elif is_bordered(op) and op.results[0] == group.output.value:
            _claim_border(op, rows.growth, group.output)


def _claim_step(op: ir.Operation, step: StructuredOp, growth: Growth, add: Callable[[], bool]) -> None:
    """What one operation reads and computes; `add` makes it part of the group."""
    own = own_dims(growth, step)
    assert own is not None, "the group has been read"
    extents = growth.space.extents
    entered = access_view(extents, step.extents, own)
    for value, access in zip(step.inputs, step.input_accesses, strict=True):
        if isinstance(value.type, ir.RankedTensorType):
            wanted = simplify_exprs([expr.substitute(own) for expr in access], growth.space)
            inner, read = through_views(value, wanted, extents)
            chain = [entered, access_view(step.extents, shape_of(value), access)]
            _claim_read(op, extents, chain, value, Read(inner, growth.placed.get(inner, read)))
    add()
    for result, access in zip(op.results, step.output_accesses, strict=True):
        if result in growth.placed:
            chain = [entered, access_view(step.extents, shape_of(result), access)]
            _claim_read(op, extents, chain, result, Read(result, growth.placed[result]))


def _claim_read(op: ir.Operation, extents: Sequence[int], chain: Sequence[View], value: ir.Value, read: Read) -> None:
    claim(op, [*chain, *views_between(value, read.value)], access_view(extents, shape_of(read.value), read.access))


def _claim_border(op: ir.Operation, growth: Growth, output: Read) -> None:
    """Where the elements of a tensor stand in what surrounds it."""
    extents = growth.space.extents
    value = op.operands[0]
    placed = access_view(extents, shape_of(op.results[0]), output.access)
    claim(op, [placed, read_view(op)], access_view(extents, shape_of(value), growth.placed[value]))


def _read_of(value: ir.Value, access: Access, reads: Sequence[Read], growth: Growth) -> Read | None:
    """Which of the reads stands for an input; several may be of the tensor behind it."""
    inner, read = through_views(value, simplify_exprs(access, growth.space), growth.space.extents)
    same = [each for each in reads if each == Read(inner, read)]
    return next((each for each in (*same, *reads) if _is_behind(value, each.value)), None)


def _is_behind(value: ir.Value, source: ir.Value) -> bool:
    """Whether `source` is `value` or what views of one map each make it from."""
    while value != source:
        owner = value.owner
        if isinstance(owner, ir.Block) or not is_view(owner.operation) or len(owner.operation.operands) != 1:
            return False
        value = owner.operation.operands[0]
    return True
