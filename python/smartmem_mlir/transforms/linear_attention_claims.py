"""What is claimed about groups of attention without a softmax: that each operation reads what the group says."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import Expr, dim, dims
from smartmem_mlir.index_maps.view import Fill, Piece, View
from smartmem_mlir.transforms.claims import access_view, claim, is_recorded, views_between
from smartmem_mlir.transforms.computed_reads import Level
from smartmem_mlir.transforms.contraction_group import Read
from smartmem_mlir.transforms.linear_attention_epilogue import Column, EpilogueStep
from smartmem_mlir.transforms.linear_attention_group import LinearAttentionGroup, LinearAttentionReader
from smartmem_mlir.transforms.structured import Access, StructuredOp, read_structured
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view, shape_of, splat_constant


def claim_linear_attention(group: LinearAttentionGroup) -> None:
    """Claims what a group is read as."""
    reader = LinearAttentionReader.start(group.members[0]) if is_recorded() else None
    if reader is None:
        return
    for op in group.members[1:]:
        reader.add(op)
    assert reader.weighing is not None, "the group has been read"
    for factor in group.factors:
        for level in factor.levels:
            _claim_level(level)
    _claim_contraction(group, reader, reader.root, tuple(dims(len(reader.root.extents))))
    _claim_contraction(group, reader, reader.weighing.op, reader.weighing.own)
    for step in group.epilogue:
        _claim_step(group, reader, step)


def _claim_contraction(
    group: LinearAttentionGroup, reader: LinearAttentionReader, op: StructuredOp, own: Sequence[Expr]
) -> None:
    """Where a contraction reads its factors and writes its result, over the attention's space."""
    entered = access_view(group.extents, op.extents, own)
    assert reader.epilogue is not None, "the group has been read"
    state, product = reader.root.op.results[0], reader.epilogue.product
    placed = {state: reader.growth.placed[state], product.value: product.placed}
    placed |= {factor.read.value: factor.read.access for factor in group.factors}
    values = zip((*op.inputs, op.op.results[0]), op.accesses, strict=True)
    for value, access in values:
        inner = value
        while inner not in placed and (view := defining_op(inner)) is not None and is_view(view):
            inner = view.operands[0]
        if inner in placed:
            chain = [entered, access_view(op.extents, shape_of(value), access), *views_between(value, inner)]
            claim(op.op, chain, access_view(group.extents, shape_of(inner), placed[inner]))


def _claim_level(level: Level) -> None:
    """What is read instead of the result of a view or an elementwise operation."""
    op, box = level.op, level.box
    moved = [d + lo for d, lo in zip(dims(box.rank), box.lo, strict=True)]

    def over_box(read: Read) -> View:
        return access_view(box.extents, shape_of(read.value), [expr.substitute(moved) for expr in read.access])

    step = read_structured(op)
    if step is not None and level.own is not None:
        entered = access_view(box.extents, step.extents, [expr.substitute(moved) for expr in level.own])
        ends = [(level.result, step.output_accesses[0]), (level.operand, step.input_accesses[level.number])]
        for read, access in ends:
            if isinstance(read, Read):
                claim(op, [entered, access_view(step.extents, shape_of(read.value), access)], over_box(read))
        return
    view = read_view(op)
    sources = [0 if k == level.number and isinstance(level.operand, Read) else -1 for k in range(len(view.operands))]
    if isinstance(level.operand, Read):
        after = over_box(level.operand)
    else:
        after = View(box.extents, (), (Piece(Box.of(box.extents), Fill(level.operand), ()),))
    claim(op, [over_box(level.result), view], after, sources=sources)


def _claim_step(group: LinearAttentionGroup, reader: LinearAttentionReader, step: EpilogueStep) -> None:
    """What an operation behind the products reads and writes."""
    op = read_structured(step.op)
    assert op is not None, "the group has been read"
    assert reader.epilogue is not None, "the group has been read"
    product, extents = reader.epilogue.product, group.result_extents
    entered = access_view(extents, op.extents, step.own)

    def claim_access(value: ir.Value, access: Access, read: Read) -> None:
        chain = [entered, access_view(op.extents, shape_of(value), access), *views_between(value, read.value)]
        claim(step.op, chain, access_view(extents, shape_of(read.value), read.access))

    for value, access, argument in zip(op.inputs, op.input_accesses, step.arguments, strict=True):
        if isinstance(argument, Read):
            if splat_constant(argument.value) is None:
                claim_access(value, access, argument)
        elif isinstance(argument, Column) or argument == 0:
            columns = dict(zip(group.values, group.columns, strict=True))
            place = [dim(d) + columns.get(d, 0) for d in range(len(extents))]
            if isinstance(argument, Column):
                for d, at in zip(group.values, argument.at, strict=True):
                    place[d] = Expr(at)
            claim_access(value, access, Read(product.value, tuple(e.substitute(place) for e in product.placed)))
        else:
            made = group.epilogue[argument - 1]
            inner = read_structured(made.op)
            assert inner is not None, "the group has been read"
            written = tuple(expr.substitute(made.own) for expr in inner.output_accesses[0])
            claim_access(value, access, Read(made.op.results[0], written))
    if step.op.results[0] == group.output.value:
        claim_access(step.op.results[0], op.output_accesses[0], group.output)
