"""Weights in the order in which their kernel reads them, as views that are computed when a model is compiled."""

from __future__ import annotations

from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import ZERO, Expr, dim
from smartmem_mlir.index_maps.view import Fill, Piece, View
from smartmem_mlir.kernels.spirv.cooperative_plan import MatrixPlan
from smartmem_mlir.kernels.spirv.plan import ShaderPlan
from smartmem_mlir.kernels.spirv.routes import packed_shape
from smartmem_mlir.transforms.view_ops import shape_of, write_view


def pack(plan: ShaderPlan, weight: ir.Value) -> ir.Value:
    """A weight as its kernel wants it: in whole vectors, or in whole matrices."""
    view = _matrices(plan, shape_of(weight)) if isinstance(plan, MatrixPlan) else _vectors(plan, shape_of(weight))
    return write_view(view, [weight], weight.type.element_type)


def _vectors(plan: ShaderPlan, shape: tuple[int, ...]) -> View:
    """[outer panels, reductions, lanes] with lanes filled up to whole vectors."""
    tiling = plan.tiling
    extent = tiling.extents[tiling.lane]
    packed = packed_shape(tiling)
    where = {d: dim(i) for i, d in enumerate((*tiling.panels, *tiling.reductions, tiling.lane))}
    whole = Box.of(packed)
    last = len(packed) - 1
    pieces = [Piece(whole.with_axis(last, 0, extent), 0, _elements(plan, where))]
    if extent < packed[-1]:
        pieces.append(Piece(whole.with_axis(last, extent, packed[-1]), Fill(0.0), ()))
    return View.of(packed, [shape], pieces)


def _matrices(plan: MatrixPlan, shape: tuple[int, ...]) -> View:
    """[outer panels, matrices of lanes, reductions in matrices of terms, lanes, terms]: each matrix in one piece."""
    tiling, lanes, terms = plan.tiling, plan.matrices.lanes, plan.matrices.terms
    *outer, last = tiling.reductions
    counts = [tiling.extents[tiling.lane] // lanes, *(tiling.extents[d] for d in outer), tiling.extents[last] // terms]
    packed = (*(tiling.extents[d] for d in tiling.panels), *counts, lanes, terms)
    block = len(tiling.panels)
    where = {d: dim(i) for i, d in enumerate(tiling.panels)}
    where |= {d: dim(block + 1 + i) for i, d in enumerate(outer)}
    where[tiling.lane] = dim(block) * lanes + dim(len(packed) - 2)
    where[last] = dim(len(packed) - 3) * terms + dim(len(packed) - 1)
    return View.of(packed, [shape], [Piece(Box.of(packed), 0, _elements(plan, where))])


def _elements(plan: ShaderPlan, where: dict[int, Expr]) -> tuple[Expr, ...]:
    """Coordinates in the weight, given those of the iteration space; the weight depends on no others."""
    exprs = [where.get(d, ZERO) for d in range(len(plan.tiling.extents))]
    return tuple(expr.substitute(exprs) for expr in plan.group.rhs.access)
