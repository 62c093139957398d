"""materialize-views: what is left of the views becomes tensor operations and index arithmetic.

Cheapest first: a view that keeps elements in memory order is an expansion, a collapse and a slice, which cost nothing;
a permutation is a `linalg.generic` that fuses with its neighbours; stacked tensors and borders of one constant have
operations of their own; anything else computes the source index of each element. Its innermost dimension keeps stride 1
where the map has it, so that code generators still find contiguous vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, Final, Literal, TypeAlias

from mlir import ir
from mlir.dialects import linalg, tensor

from smartmem_mlir.index_maps import movement
from smartmem_mlir.index_maps.expr import dim, dims
from smartmem_mlir.index_maps.refine import Digit, StridedAccess, factor, refine
from smartmem_mlir.index_maps.view import Fill, Piece, View
from smartmem_mlir.transforms.access_folding import is_reshape, is_structured_read
from smartmem_mlir.transforms.claims import tell
from smartmem_mlir.transforms.ir_walk import block_operations, users
from smartmem_mlir.transforms.pass_base import Pass, option
from smartmem_mlir.transforms.structured import build_generic_with, read_structured, tensor_type
from smartmem_mlir.transforms.view_code import element_indices, fill_constant, read_element
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view, shape_of

Form: TypeAlias = Literal["in-place", "permutation", "padding", "stack", "index"]
"""What a view can become: expansion, slice and collapse; a permuted copy; `tensor.pad`; `tensor.concat`; index
arithmetic."""

_OPERATIONS: Final[Mapping[Form, str]] = {
    "permutation": "linalg.generic",
    "padding": "tensor.pad",
    "stack": "tensor.concat",
    "index": "linalg.generic",
}

_WHOLE_READERS: Final = ("flow.dispatch", "func.return")
"""Kernels that are there already, and the caller."""


def materialize_views(root: ir.Operation, insert: bool = False) -> int:
    """Replaces every view below `root`.

    Args:
        root: The module.
        insert: Whether parts that are stacked along an inner axis are inserted one by one, for kernels that are there
            already.

    Returns:
        How many views were replaced.
    """
    count = 0
    for op in block_operations(root):
        if not is_view(op):
            continue
        with ir.InsertionPoint(op), op.location:
            element_type = op.results[0].type.element_type
            view, fused = read_view(op), _is_fused(op.results[0])
            inserted = insert and _is_read_whole(op.results[0])
            form, value = materialize(view, list(op.operands), element_type, fused, inserted)
        _tell_form(op, view, form, fused, value)
        op.results[0].replace_all_uses_with(value)
        op.erase()
        count += 1
    return count


def _is_fused(value: ir.Value) -> bool:
    """Whether every user computes element by element or row by row: code generators fuse an index computation there."""
    readers = [read_structured(user) for user in users(value)]
    return all(reader is not None and not reader.is_contraction for reader in readers)


def _is_read_whole(value: ir.Value) -> bool:
    """Whether kernels alone read the value, which nothing fuses with.

    What IREE computes with the value could take the insertions into its kernel, which has not been measured.
    """
    return all(user.name in _WHOLE_READERS for user in users(value))


def _tell_form(op: ir.Operation, view: View, form: Form, fused: bool, value: ir.Value) -> None:
    """Records what a view became and, if that is a copy, why."""
    readers = list(users(op.results[0]))
    if form == "in-place":
        tell(op, "in-place", readers)
    elif fused and form in ("index", "permutation"):
        tell(op, "index", readers)
    else:
        made = defining_op(value)
        operation = made.name if form == "stack" and made is not None else _OPERATIONS[form]
        tell(op, "copy", readers, operation=operation, reason=_reason(view, form, readers))


def _reason(view: View, form: Form, readers: Sequence[ir.Operation]) -> str:
    """Why no neighbour reads or writes through the view."""
    if form == "stack":
        return f"joins {len(view.pieces)} parts that different operations compute"
    if form == "padding":
        return "its border is no element of what it pads, and its reader is not computed border by border"
    if any(reader.name == "func.return" for reader in readers):
        return "it is a result of the model, which has the caller's layout"
    structured = [read_structured(reader) for reader in readers]
    if any(reader is not None and reader.is_contraction for reader in structured):
        return "a contraction reads it, whose iteration space cannot be split until the map has strides alone"
    return "its readers are not structured operations that could compute the indices themselves"


def materialize(
    view: View, sources: Sequence[ir.Value], element_type: ir.Type, fused: bool = False, insert: bool = False
) -> tuple[Form, ir.Value]:
    """Creates, at the insertion point, operations that compute the view of `sources`.

    Args:
        view: What to compute.
        sources: One tensor per operand of the view.
        element_type: Element type of the result.
        fused: Whether to compute indices where a permutation would do. A permutation spelled as such is moved about by
            the code generator's own rules and splits what would be one kernel with its users.
        insert: Whether parts that are stacked along an inner axis are inserted one by one.

    Returns:
        What it became, and the value.
    """
    if not view.pieces:
        return "in-place", tensor.empty(list(view.shape), element_type)
    if view.single_map is not None:
        plain = _in_memory_order(view, sources[0])
        if plain is not None:
            return "in-place", plain
        permuted = None if fused and _has_plain_innermost(view) else _permuted(view, sources[0])
        if permuted is not None:
            return "permutation", permuted
    padded = _padded(view, sources)
    if padded is not None:
        return "padding", padded
    stacked = _stacked(view, sources, element_type, insert)
    if stacked is not None:
        return "stack", stacked
    return "index", _gathered(view, sources, element_type)


def _in_memory_order(view: View, source: ir.Value) -> ir.Value | None:
    """The view as expansion, slice and collapse of its source, None if it reorders or repeats elements."""
    if is_structured_read(view):
        single = view.single_map
        assert single is not None
        access = factor(view.operands[0], single.exprs, view.shape)
        assert access is not None
        return _reshaped(_expand_and_slice(source, access), view.shape)
    return _reshaped(source, view.shape) if is_reshape(view) else None


def _has_plain_innermost(view: View) -> bool:
    """Whether no source coordinate divides the innermost index: one division a row, runs of stride 1 within it."""
    single = view.single_map
    innermost = len(view.shape) - 1
    return single is not None and not any(
        innermost in sub.dims for expr in single.exprs for sub in expr.subexprs() if sub is not expr
    )


def _expand_and_slice(source: ir.Value, access: StridedAccess) -> ir.Value:
    """The source by digits, cut to what is read; digits that no dimension indexes are dropped."""
    digits = access.digits
    value = source
    if any(len(axis) > 1 for axis in access.axes):
        value = _reshaped(value, [digit.extent for digit in digits])
    kept = [digit.size for digit in digits if digit.dim is not None]
    if all(_is_untouched(digit) for digit in digits):
        return _reshaped(value, kept)
    return tensor.ExtractSliceOp(
        tensor_type(kept, value.type),
        value,
        [],
        [],
        [],
        [digit.offset for digit in digits],
        [digit.size for digit in digits],
        [digit.step for digit in digits],
    ).result


def _is_untouched(digit: Digit) -> bool:
    return digit.is_whole and digit.offset == 0


def _reshaped(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """The tensor in another shape, by collapsing each run of axes that changes and expanding it again."""
    old, new = shape_of(value), tuple(shape)
    if old == new:
        return value
    groups = movement.reshape_groups(old, new)
    collapsed = [_product(old, old_axes) for old_axes, _ in groups]
    if len(collapsed) < len(old) or not new:
        target = tensor_type(collapsed if new else [], value.type)
        value = tensor.CollapseShapeOp(target, value, [list(axes) for axes, _ in groups] if new else []).result
    if len(new) > len(shape_of(value)):
        reassociation = [list(axes) for _, axes in groups] if old else []
        value = tensor.ExpandShapeOp(tensor_type(new, value.type), value, reassociation, [], list(new)).result
    return value


def _product(extents: Sequence[int], axes: range) -> int:
    total = 1
    for axis in axes:
        total *= extents[axis]
    return total


def _permuted(view: View, source: ir.Value) -> ir.Value | None:
    """A copy with permuted and repeated dimensions over a refined index space, None if the map has other parts."""
    single = view.single_map
    assert single is not None
    refinement = refine(view.shape, [single.exprs])
    if refinement is None:
        return None
    access = factor(view.operands[0], refinement.apply(single.exprs), refinement.extents)
    if access is None or len(set(access.dims)) < len(access.dims):
        return None
    read = _expand_and_slice(source, access)
    extents = refinement.extents
    empty = tensor.empty(list(extents), source.type.element_type)
    accesses = [tuple(dim(d) for d in access.dims), dims(len(extents))]
    copy = build_generic_with(
        [read], [empty], accesses, [False] * len(extents), lambda elements: linalg.YieldOp([elements[0]])
    )
    return _reshaped(copy.results[0], view.shape)


def _padded(view: View, sources: Sequence[ir.Value]) -> ir.Value | None:
    """`tensor.pad` for a slice of one source inside a border of one constant."""
    reads = [piece for piece in view.pieces if not isinstance(piece.source, Fill)]
    fills = {piece.source for piece in view.pieces if isinstance(piece.source, Fill)}
    if len(reads) != 1 or len(fills) != 1:
        return None
    (piece,) = reads
    (fill,) = fills
    assert isinstance(fill, Fill)
    source = _plain_source(piece, sources)
    if source is None:
        return None
    low = list(piece.box.lo)
    high = [extent - hi for extent, hi in zip(view.shape, piece.box.hi, strict=True)]
    original = sources[piece.source] if isinstance(piece.source, int) else source
    unreshaped = _border_of_reshaped(shape_of(original), piece.box.extents, low, high)
    if unreshaped is None:
        return _pad(source, low, high, fill)
    return _reshaped(_pad(original, *unreshaped, fill), view.shape)


def _border_of_reshaped(
    old: Sequence[int], new: Sequence[int], low: Sequence[int], high: Sequence[int]
) -> tuple[list[int], list[int]] | None:
    """The border of a tensor, before a reshape, that is the given one after it; None where no axis has it.

    An expansion between a tensor and its border would keep the border out of the kernel that computes the tensor.
    """
    if prod(old) != prod(new):
        return None
    before: tuple[list[int], list[int]] = ([0] * len(old), [0] * len(old))
    for old_axes, new_axes in movement.reshape_groups(old, new):
        bordered = [axis for axis in new_axes if low[axis] or high[axis]]
        if not bordered:
            continue
        same = [axis for axis in old_axes if old[axis] == new[bordered[0]]]
        if len(bordered) > 1 or not same or old[same[0]] != prod(old[axis] for axis in old_axes):
            return None
        before[0][same[0]], before[1][same[0]] = low[bordered[0]], high[bordered[0]]
    return before


def _pad(source: ir.Value, low: Sequence[int], high: Sequence[int], fill: Fill) -> ir.Value:
    shape = [lo + extent + hi for lo, extent, hi in zip(low, shape_of(source), high, strict=True)]
    value = fill_constant(fill, source.type.element_type)
    pad = tensor.PadOp(tensor_type(shape, source.type), source, [], [], list(low), list(high))
    index = ir.IndexType.get()
    block = ir.Block.create_at_start(pad.regions[0], [index] * len(low), [pad.location] * len(low))
    with ir.InsertionPoint(block):
        tensor.YieldOp(value)
    return pad.result


def _plain_source(piece: Piece, sources: Sequence[ir.Value]) -> ir.Value | None:
    """What the piece reads, in the shape of its box, if that is a slice of its source in memory order."""
    if isinstance(piece.source, Fill):
        return None
    source = sources[piece.source]
    from_zero = [d + lo for d, lo in zip(dims(piece.box.rank), piece.box.lo, strict=True)]
    alone = View.mapped(piece.box.extents, shape_of(source), [expr.substitute(from_zero) for expr in piece.exprs])
    return _in_memory_order(alone, source)


def _stacked(view: View, sources: Sequence[ir.Value], element_type: ir.Type, insert: bool) -> ir.Value | None:
    """`tensor.concat` for slices of sources, one after another along one axis; or each inserted into the result."""
    pieces = view.pieces
    if len(pieces) < 2:
        return None
    axes = [axis for axis in range(len(view.shape)) if pieces[0].box.hi[axis] != view.shape[axis]]
    if len(axes) != 1:
        return None
    whole = view.box.cross_section(axes[0])
    if any(piece.box.cross_section(axes[0]) != whole for piece in pieces):
        return None
    ordered = sorted(pieces, key=lambda p: p.box.lo[axes[0]])
    parts = [_plain_source(piece, sources) for piece in ordered]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return None
    if insert and prod(view.shape[: axes[0]]) > 1:
        return _inserted(view.shape, [piece.box.lo for piece in ordered], found)
    return tensor.ConcatOp(ir.RankedTensorType.get(list(view.shape), element_type), axes[0], found).result


def _inserted(shape: Sequence[int], places: Sequence[Sequence[int]], parts: Sequence[ir.Value]) -> ir.Value:
    """Each part is read and written once.

    IREE concatenates outermost axes only: for others it transposes the parts, joins them and transposes the result.
    """
    value = tensor.empty(list(shape), parts[0].type.element_type)
    for part, place in zip(parts, places, strict=True):
        strides = [1] * len(shape)
        value = tensor.InsertSliceOp(part, value, [], [], [], list(place), list(shape_of(part)), strides).result
    return value


def _gathered(view: View, sources: Sequence[ir.Value], element_type: ir.Type) -> ir.Value:
    """Computes the source index of each element."""
    identity = dims(len(view.shape))
    empty = tensor.empty(list(view.shape), element_type)

    def body(_: Sequence[ir.Value]) -> None:
        linalg.YieldOp([read_element(view, sources, element_indices(identity), element_type)])

    return build_generic_with([], [empty], [identity], [False] * len(identity), body).results[0]


@dataclass(frozen=True)
class MaterializeViews(Pass):
    """Turn the remaining views into tensor operations and index arithmetic.

    In memory order: expansions, collapses and slices. Otherwise a permuted copy in front of a contraction, and an index
    computed at each read in front of everything else, where it fuses.
    """

    argument: ClassVar[str] = "smartmem-materialize-views"
    example: ClassVar[str] = "rotation.mlir"
    dependent_dialects: ClassVar[tuple[str, ...]] = ("affine", "arith", "linalg", "smartmem", "tensor")

    insert: bool = option(
        False, "insert parts that are stacked along an inner axis into the result, one by one, where kernels read it"
    )

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        materialize_views(op, self.insert)
