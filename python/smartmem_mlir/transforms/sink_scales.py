"""sink-scales: a contraction of scaled inputs becomes a scaled contraction.

The sum of `s*a*b` is `s` times the sum of `a*b`, up to rounding, whenever `s` does not vary along what is summed.
Attention has two such scales. Queries are multiplied by a constant before their product with the keys, which puts an
operation, and with it a kernel, between the projection and the product that could read the projection directly. And
a softmax divides each row by its sum before the product with the values: dividing afterwards touches fewer elements,
and no tile of exponentials has to be kept until the sum is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, linalg

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import dims
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.transforms.access_folding import projected_read
from smartmem_mlir.transforms.claims import access_view, claim, is_recorded, views_between
from smartmem_mlir.transforms.ir_walk import block_operations, erase_dead, has_one_use
from smartmem_mlir.transforms.pass_base import Pass, option
from smartmem_mlir.transforms.structured import (
    Access,
    StructuredOp,
    build_generic,
    build_generic_with,
    coordinates_of_dims,
    element_type,
    read_structured,
    splat_init,
)
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view, shape_of, write_view

_PRODUCT, _QUOTIENT = "arith.mulf", "arith.divf"


def sink_scales(root: ir.Operation, divisions: bool = True) -> int:
    """Moves scales of contraction inputs that are the same along the contraction's sums to the results.

    Args:
        root: The module.
        divisions: Whether divisions are moved too.

    Returns:
        How many were moved.
    """
    moved = 0
    for op in block_operations(root):
        contraction = read_structured(op)
        if contraction is None or not contraction.is_contraction or len(contraction.outputs) != 1:
            continue
        # A zero start value scales with the sum; any other would have to be divided first.
        if not _starts_at_zero(contraction.outputs[0]):
            continue
        for number in range(len(contraction.inputs)):
            found = _find_scale(contraction, number)
            if found is not None and (divisions or not _is_quotient(found[0])):
                contraction = _unscale(contraction, number, *found)
                moved += 1
    erase_dead(root)
    return moved


def _starts_at_zero(value: ir.Value) -> bool:
    fill = defining_op(value)
    if fill is None or fill.name != "linalg.fill":
        return False
    scalar = defining_op(fill.operands[0])
    if scalar is None or scalar.name != "arith.constant":
        return False
    attr = scalar.attributes["value"]
    return isinstance(attr, ir.FloatAttr) and attr.value == 0.0


def _find_scale(contraction: StructuredOp, number: int) -> tuple[StructuredOp, Access] | None:
    """The scale of an input, perhaps behind views, and how its second operand is read over the contraction's space."""
    value = contraction.inputs[number]
    access = contraction.input_accesses[number]
    while True:
        op = defining_op(value)
        if op is None or not has_one_use(value):
            return None
        if not is_view(op):
            break
        single = read_view(op).single_map
        if single is None:
            return None
        access = tuple(expr.substitute(access) for expr in single.exprs)
        value = op.operands[0]
    scale = read_structured(op)
    if scale is None or not _is_scale(scale):
        return None
    if not _is_at_least(element_type(contraction.outputs[0].type), element_type(scale.outputs[0].type)):
        return None
    read = simplify_exprs([expr.substitute(access) for expr in scale.input_accesses[1]], Box.of(contraction.extents))
    summed = {d for d, reduced in enumerate(contraction.reductions) if reduced}
    return None if any(expr.dims & summed for expr in read) else (scale, read)


def _is_at_least(sum_type: ir.Type, scale_type: ir.Type) -> bool:
    """Whether a sum of this type may be scaled, in its own type, by what its terms were scaled by in another."""
    return sum_type == scale_type or (isinstance(sum_type, ir.F32Type) and isinstance(scale_type, ir.F16Type))


def _is_quotient(op: StructuredOp) -> bool:
    return bool(next(iter(op.body.operations)).operation.name == _QUOTIENT)


def _is_scale(op: StructuredOp) -> bool:
    """Whether the operation multiplies or divides its first input, element by element, by its second."""
    if not op.is_elementwise or len(op.outputs) != 1 or len(op.inputs) != 2:
        return False
    inner = [each.operation for each in op.body.operations]
    identity = dims(len(op.extents))
    return (
        [each.name for each in inner] in ([_PRODUCT, "linalg.yield"], [_QUOTIENT, "linalg.yield"])
        and list(inner[0].operands) == list(op.body.arguments)[:2]
        and op.input_accesses[0] == identity
        and op.output_accesses[0] == identity
    )


def _unscale(contraction: StructuredOp, number: int, scale: StructuredOp, read: Access) -> StructuredOp:
    """The contraction of the unscaled input, its result scaled instead."""
    op = contraction.op
    with ir.InsertionPoint(op), op.location:
        inputs = list(contraction.inputs)
        inputs[number] = _without_scale(inputs[number], scale)
        product = build_generic(
            inputs, contraction.outputs, contraction.accesses, contraction.reductions, contraction.body
        )
        shape = shape_of(product.results[0])
        output = splat_init(contraction.outputs[0], shape)
        assert output is not None, "the start value was checked to be a fill"
        placed = coordinates_of_dims(contraction.output_accesses[0], len(contraction.extents))
        wanted = simplify_exprs([expr.substitute(placed) for expr in read], Box.of(shape))
        made: list[View] = []
        factor, factor_access = projected_read(scale.inputs[1], wanted, shape, partial(_make_view, made))
        _claim_factor(contraction, number, scale, factor_access, made)
        identity = dims(len(shape))
        scaled = build_generic_with(
            [product.results[0], factor],
            [output],
            [identity, factor_access, identity],
            [False] * len(shape),
            partial(_scale_element, quotient=_is_quotient(scale)),
        )
    op.results[0].replace_all_uses_with(scaled.results[0])
    op.erase()
    return replace(contraction, op=product.operation, inputs=tuple(inputs), body=product.regions[0].blocks[0])


def _scale_element(arguments: Sequence[ir.Value], quotient: bool) -> None:
    element, factor, _ = arguments
    if factor.type != element.type:
        factor = arith.extf(element.type, factor)
    linalg.YieldOp([arith.divf(element, factor) if quotient else arith.mulf(element, factor)])


def _without_scale(value: ir.Value, scale: StructuredOp) -> ir.Value:
    """`value` computed from the scale's input instead of its result."""
    op = defining_op(value)
    assert op is not None
    if op == scale.op:
        return scale.inputs[0]
    source = _without_scale(op.operands[0], scale)
    with op.location:
        return write_view(read_view(op), [source], source.type.element_type)


def _make_view(made: list[View], view: View, value: ir.Value) -> ir.Value:
    made.append(view)
    return write_view(view, [value], value.type.element_type)


def _claim_factor(
    contraction: StructuredOp, number: int, scale: StructuredOp, read: Access, made: Sequence[View]
) -> None:
    """Records that behind the contraction each element meets the factor that its terms met in front of it."""
    factor = scale.inputs[1]
    if not is_recorded() or not isinstance(factor.type, ir.RankedTensorType):
        return
    value, scaled = contraction.inputs[number], scale.op.results[0]
    result = shape_of(contraction.outputs[0])
    before = [
        access_view(contraction.extents, shape_of(value), contraction.input_accesses[number]),
        *views_between(value, scaled),
        access_view(scale.extents, shape_of(factor), scale.input_accesses[1]),
    ]
    summed = access_view(contraction.extents, result, contraction.output_accesses[0])
    if made:
        claim(scale.op, before, made[0], through=[summed, access_view(result, made[0].shape, read)])
    else:
        claim(scale.op, before, access_view(result, shape_of(factor), read), through=[summed])


@dataclass(frozen=True)
class SinkScales(Pass):
    """Move scales that a contraction's sums do not see behind the contraction.

    Attention scales its queries and divides its weights by their row sums; behind the products both join the products'
    epilogues. Changes rounding, not more than reordering a sum does.
    """

    argument: ClassVar[str] = "smartmem-sink-scales"
    example: ClassVar[str] = "attention_scores.mlir"

    divisions: bool = option(
        True, "move divisions too; without, a softmax stays whole, which suits kernels that compute whole rows"
    )

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        sink_scales(op, self.divisions)
