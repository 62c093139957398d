"""Gathers that read through views: a gather of a broadcast or permuted tensor reads the tensor itself.

The positions are known at run time only, but where a view has its elements is not: an index map applied to the
positions takes the place of a copy of all elements, of which the gather wants a few.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import tensor

from smartmem_mlir.index_maps.expr import Dim, Expr, dim
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.transforms.claims import access_view, claim, is_recorded, tell
from smartmem_mlir.transforms.index_expressions import IndexEvaluator
from smartmem_mlir.transforms.ir_walk import block_operations
from smartmem_mlir.transforms.structured import read_structured
from smartmem_mlir.transforms.view_code import index_value
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view, shape_of


def read_gathers_through_views(root: ir.Operation) -> int:
    """Lets the gathers in structured operations read what the views that they read are views of.

    Returns:
        How many views were read through.
    """
    folded = 0
    for op in block_operations(root):
        structured = read_structured(op)
        if structured is None:
            continue
        for inner in [inner.operation for inner in structured.body.operations]:
            if inner.name == "tensor.extract" and _read_through(op, inner):
                folded += 1
    return folded


def _read_through(op: ir.Operation, extract: ir.Operation) -> bool:
    source = defining_op(extract.operands[0])
    if source is None or not is_view(source) or len(source.operands) != 1:
        return False
    view = read_view(source)
    single = view.single_map
    # Divisions would cost more than the element.
    if single is None or any(not isinstance(atom, Dim) for expr in single.exprs for atom, _ in expr.terms):
        return False
    indices = list(extract.operands)[1:]
    with ir.InsertionPoint(extract), extract.location:
        made = tensor.extract(source.operands[0], [index_value(expr, indices) for expr in single.exprs])
    _claim(op, view, indices, made)
    tell(source, "read", [op])
    extract.results[0].replace_all_uses_with(made)
    extract.erase()
    return True


def _claim(op: ir.Operation, view: View, indices: Sequence[ir.Value], element: ir.Value) -> None:
    """Records where the emitted operations read, as a function of the gather's own positions."""
    extract = defining_op(element)
    if not is_recorded() or extract is None:
        return
    positions: dict[ir.Value, Expr] = {index: dim(axis) for axis, index in enumerate(indices)}
    evaluate = IndexEvaluator(view.shape, positions)
    computed = [evaluate(index) for index in list(extract.operands)[1:]]
    exprs = [expr for expr in computed if expr is not None]
    if len(positions) < len(indices) or len(exprs) < len(computed):
        # One value is the position on two axes: what was emitted cannot be told apart.
        exprs = [expr for piece in view.pieces for expr in piece.exprs]
    claim(op, [view], access_view(view.shape, shape_of(extract.operands[0]), exprs))
