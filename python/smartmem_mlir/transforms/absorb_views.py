"""absorb-views: elementwise operations and reductions compute the indices of the views that they read.

What no iteration space dissolves (a rotation, windows of it) costs one index computation a row inside the kernel that
reads it, instead of a kernel and a tensor of its own (paper, section 3.2.1). The index is computed in the reader's body
and not in an operation of its own, because a code generator that fuses such an operation keeps a tile of its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import tensor

from smartmem_mlir.index_maps.compose import compose
from smartmem_mlir.index_maps.expr import Expr, dim
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.transforms.access_folding import is_reshape, is_structured_read
from smartmem_mlir.transforms.claims import access_view, claim, is_recorded, tell
from smartmem_mlir.transforms.index_expressions import IndexEvaluator
from smartmem_mlir.transforms.ir_walk import block_operations, erase_dead
from smartmem_mlir.transforms.pass_base import Pass, option
from smartmem_mlir.transforms.structured import (
    Access,
    StructuredOp,
    build_generic_with,
    copy_body,
    element_type,
    is_projection,
    read_structured,
    unbounded_dims,
)
from smartmem_mlir.transforms.view_code import element_indices, read_element
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view


def absorb_views(root: ir.Operation, max_pieces: int = 4) -> int:
    """Lets readers compute the indices of the views that they read.

    Args:
        root: Where to look.
        max_pieces: Leave views of more pieces alone; each piece is a select an element.

    Returns:
        How many reads were absorbed.
    """
    absorbed = 0
    for op in block_operations(root):
        reader = read_structured(op)
        if reader is None or reader.is_contraction:
            continue
        views: dict[int, tuple[View, list[ir.Value]]] = {}
        for number, (value, access) in enumerate(zip(reader.inputs, reader.input_accesses, strict=True)):
            inner = defining_op(value)
            if inner is None or not is_view(inner) or not is_projection(access):
                continue
            view = read_view(inner)
            if len(view.pieces) <= max_pieces and not is_reshape(view) and not is_structured_read(view):
                views[number] = (view, list(inner.operands))
        if views:
            _absorb(reader, views)
            absorbed += len(views)
    erase_dead(root)
    return absorbed


def _absorb(reader: StructuredOp, views: dict[int, tuple[View, list[ir.Value]]]) -> None:
    kept = [number for number in range(len(reader.inputs)) if number not in views]
    with ir.InsertionPoint(reader.op), reader.op.location:
        inputs = [reader.inputs[number] for number in kept]
        accesses = [reader.input_accesses[number] for number in kept] + list(reader.output_accesses)
        bounds = _bounds_operand(reader, accesses)
        if bounds is not None:
            inputs.append(bounds[0])
            accesses.insert(len(kept), bounds[1])

        def body(arguments: Sequence[ir.Value]) -> None:
            given = iter(arguments)
            elements = []
            for number, value in enumerate(reader.inputs):
                if number in views:
                    view, sources = views[number]
                    indices = element_indices(reader.input_accesses[number])
                    element = read_element(view, sources, indices, element_type(value.type))
                    _claim_read(reader, number, view, element)
                    elements.append(element)
                else:
                    elements.append(next(given))
            copy_body(reader.body, [*elements, *arguments[len(inputs) :]])

        made = build_generic_with(inputs, reader.outputs, accesses, reader.reductions, body)
    for number in views:
        tell(reader.inputs[number].owner, "read", [reader.op])
    for old, new in zip(reader.op.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    reader.op.erase()


def _claim_read(reader: StructuredOp, number: int, view: View, element: ir.Value) -> None:
    """Records which element the reader computes the place of.

    For a view of one piece the place is what the emitted operations compute, read back from them; for several pieces it
    is what they were emitted from.
    """
    if not is_recorded():
        return
    entered = access_view(reader.extents, view.shape, reader.input_accesses[number])
    extract = defining_op(element)
    computed: list[Expr | None] = [None]
    if extract is not None and extract.name == "tensor.extract":
        evaluate = IndexEvaluator(reader.extents, {})
        computed = [evaluate(_unclamped(index)) for index in list(extract.operands)[1:]]
    indices = [index for index in computed if index is not None]
    if len(view.operands) == 1 and len(indices) == len(computed):
        claim(reader.op, [entered, view], access_view(reader.extents, view.operands[0], indices))
    else:
        claim(reader.op, [entered, view], compose(entered, view))


def _unclamped(index: ir.Value) -> ir.Value:
    """The index before `read_element` keeps it inside the source, which changes no index of a correct view."""
    op = defining_op(index)
    while op is not None and op.name in ("arith.minsi", "arith.maxsi"):
        index = op.operands[0]
        op = defining_op(index)
    return index


def _bounds_operand(reader: StructuredOp, accesses: Sequence[Access]) -> tuple[ir.Value, Access] | None:
    """A tensor that nobody reads but that says how long the dimensions are that only absorbed views run over."""
    missing = unbounded_dims(accesses, len(reader.extents))
    if not missing:
        return None
    like = element_type(reader.outputs[0].type)
    return tensor.empty([reader.extents[d] for d in missing], like), tuple(dim(d) for d in missing)


@dataclass(frozen=True)
class AbsorbViews(Pass):
    """Compute the indices of views inside the elementwise operations and reductions that read them.

    Costs one index computation a row and no kernel: windows of a rolled image are read by the layer norm itself, and a
    residual addition reads them back.
    """

    argument: ClassVar[str] = "smartmem-absorb-views"
    example: ClassVar[str] = "shifted_windows.mlir"
    dependent_dialects: ClassVar[tuple[str, ...]] = ("affine", "arith", "linalg", "smartmem", "tensor")

    max_pieces: int = option(4, "Views of more pieces become tensors; each piece is a select an element.")

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        absorb_views(op, self.max_pieces)
