"""Rewriting a structured operation so that it reads (or writes) through views itself.

The pieces that `fold-views` decides with: composing a view into an operand's index map, refining the iteration space
until the map is a permutation, and building the operation over the refined space. Nothing here chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from mlir import ir

from smartmem_mlir.index_maps import movement
from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.compose import MAX_TERMS
from smartmem_mlir.index_maps.errors import IndexOverflowError, NotInvertibleError
from smartmem_mlir.index_maps.expr import ZERO, Expr, dim, term_count
from smartmem_mlir.index_maps.inverse import inverse
from smartmem_mlir.index_maps.map import IndexMap
from smartmem_mlir.index_maps.refine import Digit, Refinement, StridedAccess, factor, refine
from smartmem_mlir.index_maps.simplify import Simplifier, simplify_exprs
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.transforms.claims import claim_rebuilt
from smartmem_mlir.transforms.structured import Access, StructuredOp, build_generic, is_projection, splat_init
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view, shape_of, write_view


@lru_cache(maxsize=1 << 12)
def is_reshape(view: View) -> bool:
    """Whether the view renames indices without reordering elements: row-major addresses are the same on both sides."""
    single = view.single_map
    if single is None or view.box.volume != Box.of(view.operands[0]).volume:
        return False
    address = movement.linearize(single.exprs, view.operands[0])
    wanted = movement.linearize([dim(i) for i in range(len(view.shape))], view.shape)
    return Simplifier(view.box).equal(address, wanted)


@lru_cache(maxsize=1 << 12)
def is_structured_read(view: View) -> bool:
    """Whether the view is an expansion and a slice, in memory order: code that reads through it is not scattered."""
    single = view.single_map
    if single is None:
        return False
    access = factor(view.operands[0], single.exprs, view.shape)
    if access is None:
        return False
    # Dimensions of extent 1 do not occur in any expression and do not disturb the order.
    return access.dims == tuple(i for i, extent in enumerate(view.shape) if extent > 1)


@dataclass(frozen=True)
class FoldedAccesses:
    """An operation's accesses after folding, over the refined iteration space.

    Args:
        refinement: How the iteration space was split.
        sources: The tensors to read, one per input: a view's source where the view was folded.
        accesses: How each input is read and each output written.
        placed: Where an element of the result belongs in the view that is written instead, if one is.
    """

    refinement: Refinement
    sources: tuple[ir.Value, ...]
    accesses: tuple[StridedAccess, ...]
    placed: IndexMap | None = None


def fold_accesses(
    op: StructuredOp,
    folded: Mapping[int, tuple[IndexMap, ir.Value]],
    optional: Mapping[int, tuple[IndexMap, ir.Value]],
) -> FoldedAccesses | None:
    """Plans the operation with views folded into its inputs.

    Args:
        op: The consumer.
        folded: For each input that must fold: the view's map and source.
        optional: The same for inputs that fold only if that splits no further dimension.

    Returns:
        None when some access stays without strides, an output would not be written once and in full, or nothing but a
        view says how long a dimension is (a sum over repeated elements).
    """
    accesses = list(op.accesses)
    sources = list(op.inputs)
    for number, (index_map, source) in folded.items():
        accesses[number] = _compose_access(index_map, op.accesses[number], op.extents)
        sources[number] = source
    refinement = refine(op.extents, accesses)
    if refinement is None:
        return None
    for number, (index_map, source) in optional.items():
        through = _compose_access(index_map, op.accesses[number], op.extents)
        if refine(refinement.extents, [refinement.apply(through)]) == trivial_refinement(refinement.extents):
            accesses[number], sources[number] = through, source
    return plan_accesses(op, refinement, sources, accesses, [shape_of(output) for output in op.outputs])


def trivial_refinement(extents: Sequence[int]) -> Refinement:
    """The refinement that splits nothing."""
    return Refinement(tuple((extent,) for extent in extents))


def plan_accesses(
    op: StructuredOp,
    refinement: Refinement,
    sources: Sequence[ir.Value],
    accesses: Sequence[Access],
    output_shapes: Sequence[Sequence[int]],
) -> FoldedAccesses | None:
    """Factors every access over the refined space; None for the reasons that `fold_accesses` gives."""
    if (not refinement.is_trivial or 1 in op.extents) and reads_index(op):
        return None
    shapes = [_shape(source) for source in sources] + [tuple(shape) for shape in output_shapes]
    factored = []
    for shape, access in zip(shapes, accesses, strict=True):
        strided = factor(shape, refinement.apply(access), refinement.extents)
        if strided is None or len(set(strided.dims)) != len(strided.dims):
            return None
        factored.append(strided)
    if not all(strided.is_bijection for strided in factored[len(sources) :]):
        return None
    indexed = {d for strided in factored for d in strided.dims}
    if any(extent > 1 and d not in indexed for d, extent in enumerate(refinement.extents)):
        return None
    return FoldedAccesses(refinement, tuple(sources), tuple(factored))


def rebuild(op: StructuredOp, plan: FoldedAccesses, written: ir.Operation | None = None) -> list[ir.Value] | None:
    """Creates the planned operation before `op`.

    Args:
        op: The operation as it is.
        plan: How it shall read and write.
        written: The view of its result that the plan writes.

    Returns:
        Its results, each reshaped to the shape that the plan's accesses factored; None when an output's initial value
        is not uniform, so that it cannot be made in another shape.
    """
    with ir.InsertionPoint(op.op), op.op.location:
        reads = [
            _digits_read(source, access) if isinstance(source.type, ir.RankedTensorType) else None
            for source, access in zip(plan.sources, plan.accesses[: len(op.inputs)], strict=True)
        ]
        inputs = []
        for value, source, read in zip(op.inputs, plan.sources, reads, strict=True):
            # What is left of a folded view stands for the nodes that the view stood for.
            with op.op.location if value == source else value.owner.location:
                inputs.append(source if read is None else write_view(read, [source], source.type.element_type))
        output_accesses = plan.accesses[len(op.inputs) :]
        shapes = [_indexed_extents(access) for access in output_accesses]
        outputs = [splat_init(output, shape) for output, shape in zip(op.outputs, shapes, strict=True)]
        made = [output for output in outputs if output is not None]
        if len(made) < len(outputs):
            return None
        # Dimensions of extent 1 occur in no access, so that nothing would say how long they are.
        kept = [d for d, extent in enumerate(plan.refinement.extents) if extent > 1]
        new_dim = {old: dim(new) for new, old in enumerate(kept)}
        reduced = [op.reductions[original] for original, part in enumerate(plan.refinement.parts) for _ in part]
        reductions = [reduced[d] for d in kept]
        maps = [tuple(new_dim[d] for d in access.dims) for access in plan.accesses]
        generic = build_generic(inputs, made, maps, reductions, op.body)
        results = []
        for result, access, shape in zip(generic.results, output_accesses, shapes, strict=True):
            whole = [_axis_extent(axis) for axis in access.axes]
            with op.op.location if written is None else written.location:
                results.append(write_view(movement.reshape(shape, whole), [result], result.type.element_type))
        claim_rebuilt(op, plan, reads, written)
        return results


def _digits_read(source: ir.Value, access: StridedAccess) -> View:
    """The tensor `source`, expanded into digits and sliced; its axes are `access.dims` in order."""
    shape = _indexed_extents(access)
    axes = iter(range(len(shape)))
    exprs = []
    for axis in access.axes:
        index = [
            Expr(digit.offset) if digit.dim is None else dim(next(axes)) * digit.step + digit.offset for digit in axis
        ]
        exprs.append(movement.linearize(index, [digit.extent for digit in axis]))
    return View.mapped(shape, shape_of(source), exprs)


def projected_read(
    value: ir.Value,
    wanted: Access,
    extents: Sequence[int],
    view_of: Callable[[View, ir.Value], ir.Value] | None = None,
) -> tuple[ir.Value, Access]:
    """A tensor and a projection that together read `value` at `wanted`: `value` itself, or a view of it.

    Args:
        value: What to read; scalars are read as they are.
        wanted: Its coordinates over an iteration space.
        extents: The iteration space.
        view_of: Creates the view; by default as an operation at the insertion point.
    """
    if not isinstance(value.type, ir.RankedTensorType):
        return value, wanted
    shape = shape_of(value)
    if is_projection(wanted) and all(
        expr == ZERO or extents[min(expr.dims)] == size for expr, size in zip(wanted, shape, strict=True)
    ):
        return value, wanted
    used = sorted(set().union(*(expr.dims for expr in wanted)))
    renumber = [dim(used.index(d)) if d in used else ZERO for d in range(len(extents))]
    view = View.mapped([extents[d] for d in used], shape, [expr.substitute(renumber) for expr in wanted])
    read = view_of(view, value) if view_of else write_view(view, [value], value.type.element_type)
    return read, tuple(dim(d) for d in used)


def through_views(value: ir.Value, wanted: Access, extents: Sequence[int]) -> tuple[ir.Value, Access]:
    """Reads the tensor behind a view instead: a broadcast would make its source look as large as its result."""
    while True:
        op = defining_op(value)
        single = read_view(op).single_map if op is not None and is_view(op) else None
        if op is None or single is None:
            return value, wanted
        behind = read_behind(single, wanted, extents)
        if behind is None:
            return value, wanted
        value, wanted = op.operands[0], behind


def read_behind(index_map: IndexMap, wanted: Access, extents: Sequence[int]) -> Access | None:
    """How to read the source of a view instead of the view; None where that is too much to compute for an index."""
    try:
        behind = simplify_exprs([expr.substitute(wanted) for expr in index_map.exprs], Box.of(extents))
    except IndexOverflowError:
        return None
    return behind if term_count(behind) <= MAX_TERMS else None


def fold_into_output(op: StructuredOp, view: View) -> tuple[FoldedAccesses, tuple[int, ...]] | None:
    """Plans the operation writing a bijective view of its single result directly.

    Returns:
        The plan and the view's shape, or None when the view has no inverse or the access no strides.
    """
    single = view.single_map
    if single is None or len(op.outputs) != 1:
        return None
    try:
        placed = inverse(single, Box.of(view.operands[0]))
    except NotInvertibleError:
        return None
    output = _compose_access(placed, op.output_accesses[0], op.extents)
    accesses = [*op.input_accesses, output]
    refinement = refine(op.extents, accesses)
    if refinement is None:
        return None
    plan = plan_accesses(op, refinement, op.inputs, accesses, [view.shape])
    return None if plan is None else (replace(plan, placed=placed), view.shape)


def _compose_access(outer: IndexMap, inner: Access, extents: Sequence[int]) -> Access:
    return simplify_exprs([expr.substitute(inner) for expr in outer.exprs], Box.of(extents))


def _indexed_extents(access: StridedAccess) -> tuple[int, ...]:
    return tuple(digit.size for digit in access.digits if digit.dim is not None)


def _axis_extent(axis: Sequence[Digit]) -> int:
    return prod(digit.extent for digit in axis)


def _shape(value: ir.Value) -> tuple[int, ...]:
    return shape_of(value) if isinstance(value.type, ir.RankedTensorType) else ()


def reads_index(op: StructuredOp) -> bool:
    """Whether the body depends on the position in the iteration space."""
    return any(inner.operation.name == "linalg.index" for inner in op.body.operations)


def gathered(op: StructuredOp) -> tuple[ir.Value, ...]:
    """The tensors that the body reads at positions that it computes or is given, each in the order that it has."""
    inner = [inner.operation for inner in op.body.operations]
    return tuple(extract.operands[0] for extract in inner if extract.name == "tensor.extract")
