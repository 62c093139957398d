"""Data-movement operations as views: one function an operation.

Each returns the view and the tensors it reads, or None when the operation is not of that kind (a dynamic size, an index
that depends on run-time data, no elements), in which case it stays what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from mlir import ir

from smartmem_mlir.errors import SmartMemError
from smartmem_mlir.index_maps import movement
from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import Expr, dim, dims
from smartmem_mlir.index_maps.movement_windows import pad
from smartmem_mlir.index_maps.view import Piece, View
from smartmem_mlir.transforms.index_expressions import IndexEvaluator
from smartmem_mlir.transforms.projections import inverse_of_projection
from smartmem_mlir.transforms.structured import (
    Access,
    StructuredOp,
    argument_number,
    read_structured,
    static_shape,
    write_map,
)
from smartmem_mlir.transforms.tabulated import tabulated_read
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view, shape_of

Raised: TypeAlias = tuple[View, list[ir.Value]]


def as_view(op: ir.Operation) -> Raised | None:
    """The view that a data-movement operation computes, None for any other operation."""
    raiser = _RAISERS.get(op.name)
    if raiser is None:
        return None
    shapes = [static_shape(value.type) for value in (*op.operands, *op.results)]
    if any(shape is None or 0 in shape for shape in shapes):
        return None
    try:
        return raiser(op)
    except SmartMemError:
        # The movement needs more pieces or larger expressions than a view may have: a copy is better.
        return None


def _transpose(op: ir.Operation) -> Raised:
    return movement.transpose(shape_of(op.operands[0]), list(op.attributes["permutation"])), [op.operands[0]]


def _broadcast(op: ir.Operation) -> Raised:
    source, shape = op.operands[0], shape_of(op.results[0])
    added = set(op.attributes["dimensions"])
    return View.mapped(shape, shape_of(source), [dim(i) for i in range(len(shape)) if i not in added]), [source]


def _reshape(op: ir.Operation) -> Raised:
    source = op.operands[0]
    return movement.reshape(shape_of(source), shape_of(op.results[0])), [source]


def _static_slice(op: ir.Operation) -> tuple[list[int], list[int], list[int]] | None:
    parts = [list(op.attributes[f"static_{part}"]) for part in ("offsets", "sizes", "strides")]
    if any(value == ir.ShapedType.get_dynamic_size() for part in parts for value in part):
        return None
    return parts[0], parts[1], parts[2]


def _extract_slice(op: ir.Operation) -> Raised | None:
    bounds = _static_slice(op)
    if bounds is None:
        return None
    offsets, sizes, strides = bounds
    source, result = op.operands[0], shape_of(op.results[0])
    kept = _kept_axes(sizes, result)
    if kept is None:
        return None
    exprs: list[Expr] = [Expr(offset) for offset in offsets]
    for position, axis in enumerate(kept):
        exprs[axis] = dim(position) * strides[axis] + offsets[axis]
    return View.mapped(result, shape_of(source), exprs), [source]


def _insert_slice(op: ir.Operation) -> Raised | None:
    bounds = _static_slice(op)
    if bounds is None or any(stride != 1 for stride in bounds[2]):
        return None
    offsets, sizes, _ = bounds
    source, into = op.operands[0], op.operands[1]
    kept = _kept_axes(sizes, shape_of(source))
    if kept is None:
        return None
    whole = Box.of(shape_of(into))
    hole = Box(tuple(offsets), tuple(o + s for o, s in zip(offsets, sizes, strict=True)))
    pieces = [Piece(hole, 1, tuple(dim(axis) - offsets[axis] for axis in kept))]
    rest = whole
    for axis in range(whole.rank):
        for lo, hi in ((rest.lo[axis], hole.lo[axis]), (hole.hi[axis], rest.hi[axis])):
            if lo < hi:
                pieces.append(Piece(rest.with_axis(axis, lo, hi), 0, dims(whole.rank)))
        rest = rest.with_axis(axis, hole.lo[axis], hole.hi[axis])
    return View.of(whole.hi, [shape_of(into), shape_of(source)], pieces), [into, source]


def _kept_axes(sizes: Sequence[int], reduced: Sequence[int]) -> list[int] | None:
    """Axes of `sizes` that remain when unit axes are dropped to give `reduced`; which of several does not matter."""
    kept: list[int] = []
    for axis, size in enumerate(sizes):
        if len(kept) < len(reduced) and reduced[len(kept)] == size:
            kept.append(axis)
        elif size != 1:
            return None
    return kept if len(kept) == len(reduced) else None


def _concat(op: ir.Operation) -> Raised:
    sources = list(op.operands)
    return movement.concat([shape_of(source) for source in sources], op.attributes["dim"].value), sources


def _pad(op: ir.Operation) -> Raised | None:
    low, high = list(op.attributes["static_low"]), list(op.attributes["static_high"])
    dynamic = ir.ShapedType.get_dynamic_size()
    body = list(op.regions[0].blocks[0].operations)
    fill = defining_op(body[-1].operands[0])
    if dynamic in low or dynamic in high or min([*low, *high], default=0) < 0:
        return None
    if fill is None or fill.name != "arith.constant":
        return None
    source = op.operands[0]
    return pad(shape_of(source), low, high, "constant", fill.attributes["value"].value), [source]


def _generic(op: ir.Operation) -> Raised | None:
    """A `linalg.generic` that only moves data: yields an operand's element or one gathered at computed indices."""
    moved = moved_element(op)
    if moved is None:
        tabulated = tabulated_read(op)
        return None if tabulated is None else (tabulated.view(), [tabulated.source])
    structured, source, access = moved
    shape = shape_of(op.results[0])
    result = inverse_of_projection(structured.output_accesses[0], structured.extents, shape)
    if result is None:
        return None
    view = View.mapped(shape, shape_of(source), [expr.substitute(result) for expr in access])
    view.check_bounds()
    return view, [source]


def moved_element(op: ir.Operation) -> tuple[StructuredOp, ir.Value, Access] | None:
    """An operation whose body yields an element of a tensor, the tensor, and where the element is; None for others."""
    structured = read_structured(op)
    if structured is None or not structured.is_elementwise or len(structured.outputs) != 1:
        return None
    yielded = list(structured.body.operations)[-1].operands[0]
    inner = defining_op(yielded)
    if inner is None:
        number = argument_number(yielded, structured.body)
        if number is None or number >= len(structured.inputs):
            return None
        source = structured.inputs[number]
        # A scalar operand is a fill, which is cheaper than any view of it.
        if not isinstance(source.type, ir.RankedTensorType):
            return None
        return structured, source, structured.input_accesses[number]
    if inner.name == "tensor.extract":
        access = _extracted_access(structured, list(inner.operands)[1:])
        return None if access is None else (structured, inner.operands[0], access)
    return None


def _extracted_access(op: StructuredOp, indices: Sequence[ir.Value]) -> Access | None:
    evaluate = IndexEvaluator(op.extents, _known_elements(op))
    exprs = [evaluate(index) for index in indices]
    known = tuple(expr for expr in exprs if expr is not None)
    return known if len(known) == len(exprs) else None


def _known_elements(op: StructuredOp) -> dict[ir.Value, Expr]:
    """The elements that an operation reads of integer tensors known now, over its iteration space."""
    known: dict[ir.Value, Expr] = {}
    for argument, operand, access in zip(op.body.arguments, op.inputs, op.input_accesses, strict=False):
        element = _known_element(operand)
        if element is not None:
            known[argument] = element.substitute(access)
    return known


def _known_element(value: ir.Value) -> Expr | None:
    """An element of an integer tensor over its coordinates: of a constant, or of what importers compute from one.

    A gather comes with two operations in front of it that count negative positions from the end.
    """
    op = defining_op(value)
    if op is None:
        return None
    if op.name == "arith.constant":
        return _constant_element(op.attributes["value"])
    if is_view(op):
        single = read_view(op).single_map
        element = None if single is None else _known_element(op.operands[0])
        return None if single is None or element is None else element.substitute(single.exprs)
    structured = read_structured(op)
    if structured is None or not structured.is_elementwise or len(structured.outputs) != 1:
        return None
    result = inverse_of_projection(structured.output_accesses[0], structured.extents, shape_of(value))
    if result is None:
        return None
    evaluate = IndexEvaluator(structured.extents, _known_elements(structured))
    element = evaluate(list(structured.body.operations)[-1].operands[0])
    return None if element is None else element.substitute(result)


def _constant_element(attr: ir.Attribute) -> Expr | None:
    """An element of a constant over its coordinates, if equal steps lead from each to the next along every axis."""
    if not isinstance(attr, ir.DenseIntElementsAttr):
        return None
    if attr.is_splat:
        return Expr(int(np.asarray(attr).reshape(-1)[0]))
    values = np.asarray(attr)
    steps = [
        int(np.take(values, 1, axis).flat[0] - values.flat[0]) if values.shape[axis] > 1 else 0
        for axis in range(values.ndim)
    ]
    affine = sum(step * index for step, index in zip(steps, np.indices(values.shape), strict=True))
    if not np.array_equal(values, values.flat[0] + affine):
        return None
    return sum((dim(axis) * step for axis, step in enumerate(steps)), Expr(int(values.flat[0])))


def why_not_view(op: ir.Operation) -> str:
    """Why a data-movement operation is not a view; empty for operations that compute."""
    if op.name not in _RAISERS:
        return ""
    if op.name == "linalg.generic":
        yielded = list(op.regions[0].blocks[0].operations)[-1].operands
        inner = [defining_op(value) for value in yielded]
        gathers = all(each is not None and each.name == "tensor.extract" for each in inner)
        return "it reads at positions that are known only at run time" if gathers else ""
    if any(static_shape(value.type) is None for value in (*op.operands, *op.results)):
        return "a shape is known only at run time"
    return "as a view it would have more pieces or larger expressions than a copy is worth"


def definition(op: ir.Operation) -> dict[str, Any]:
    """What defines an operation that `as_view` understands, beside its shapes, as `MovementClaim` wants it."""
    if op.name == "linalg.generic":
        moved = moved_element(op)
        if moved is None:
            tabulated = tabulated_read(op)
            assert tabulated is not None
            return tabulated.definition()
        structured, _, access = moved
        rank = len(structured.extents)
        writes = structured.output_accesses[0]
        return {
            "extents": structured.extents,
            "reads": str(write_map(access, rank)),
            "writes": str(write_map(writes, rank)),
        }
    if op.name == "linalg.transpose":
        return {"permutation": tuple(op.attributes["permutation"])}
    if op.name == "linalg.broadcast":
        return {"dimensions": tuple(op.attributes["dimensions"])}
    if op.name == "tensor.concat":
        return {"dim": op.attributes["dim"].value}
    if op.name == "tensor.pad":
        fill = list(op.regions[0].blocks[0].operations)[-1].operands[0].owner.attributes["value"].value
        return {"low": tuple(op.attributes["static_low"]), "high": tuple(op.attributes["static_high"]), "fill": fill}
    if op.name in ("tensor.extract_slice", "tensor.insert_slice"):
        return {part: tuple(op.attributes[f"static_{part}"]) for part in ("offsets", "sizes", "strides")}
    return {}


_RAISERS: Mapping[str, Callable[[ir.Operation], Raised | None]] = {
    "linalg.transpose": _transpose,
    "linalg.broadcast": _broadcast,
    "tensor.expand_shape": _reshape,
    "tensor.collapse_shape": _reshape,
    "tensor.extract_slice": _extract_slice,
    "tensor.insert_slice": _insert_slice,
    "tensor.concat": _concat,
    "tensor.pad": _pad,
    "linalg.generic": _generic,
}
