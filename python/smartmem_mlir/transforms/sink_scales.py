"""sink-scales: a contraction of scaled inputs becomes a scaled contraction.

Attention scales its queries before the product, which puts an elementwise operation, and with it a kernel, between the
projection and the product that could otherwise read the projection directly. The sum of `s*a*b` is `s` times the sum of
`a*b`, up to rounding; afterwards the scale sits where the product's other epilogues are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from mlir import ir

from smartmem_mlir.index_maps.expr import dims
from smartmem_mlir.transforms.ir_walk import block_operations, erase_dead, has_one_use
from smartmem_mlir.transforms.pass_base import Pass
from smartmem_mlir.transforms.structured import (
    StructuredOp,
    build_generic,
    read_structured,
    splat_init,
)
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view, shape_of, write_view


def sink_scales(root: ir.Operation) -> int:
    """Moves multiplications by a constant from the inputs of contractions to their results.

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
        for number, value in enumerate(contraction.inputs):
            scale = _scaled(value)
            if scale is None:
                continue
            contraction = _unscale(contraction, number, scale)
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


def _scaled(value: ir.Value) -> StructuredOp | None:
    """The operation that scales by a constant, if `value` is its result, perhaps through views, and has no other use."""
    if not has_one_use(value):
        return None
    op = defining_op(value)
    if op is None:
        return None
    if is_view(op) and len(op.operands) == 1 and read_view(op).single_map is not None:
        return _scaled(op.operands[0])
    scale = read_structured(op)
    if scale is None or not scale.is_elementwise or len(scale.outputs) != 1 or len(scale.inputs) != 2:
        return None
    kinds = [inner.operation.name for inner in scale.body.operations]
    if kinds != ["arith.mulf", "linalg.yield"]:
        return None
    identity = dims(len(scale.extents))
    constant = defining_op(scale.inputs[1])
    is_constant = constant is not None and constant.name == "arith.constant" and scale.input_accesses[1] == ()
    if not is_constant or scale.input_accesses[0] != identity or scale.output_accesses[0] != identity:
        return None
    return scale


def _unscale(contraction: StructuredOp, number: int, scale: StructuredOp) -> StructuredOp:
    """The contraction of the unscaled input, its result scaled instead."""
    op = contraction.op
    with ir.InsertionPoint(op), op.location:
        inputs = list(contraction.inputs)
        inputs[number] = _through_views(inputs[number], scale)
        product = build_generic(
            inputs, contraction.outputs, contraction.accesses, contraction.reductions, contraction.body
        )
        shape = shape_of(product.results[0])
        output = splat_init(contraction.outputs[0], shape)
        assert output is not None, "the start value was checked to be a fill"
        identity = dims(len(shape))
        scaled = build_generic(
            [product.results[0], scale.inputs[1]],
            [output],
            [identity, (), identity],
            [False] * len(shape),
            scale.body,
        )
    op.results[0].replace_all_uses_with(scaled.results[0])
    op.erase()
    return replace(contraction, op=product.operation, inputs=tuple(inputs), body=product.regions[0].blocks[0])


def _through_views(value: ir.Value, scale: StructuredOp) -> ir.Value:
    """`value` computed from the scale's input instead of its result."""
    op = defining_op(value)
    assert op is not None
    if op == scale.op:
        return scale.inputs[0]
    source = _through_views(op.operands[0], scale)
    return write_view(read_view(op), [source], source.type.element_type)


@dataclass(frozen=True)
class SinkScales(Pass):
    """Move multiplications by a constant behind the contraction that they feed.

    Attention scales its queries; behind the product the scale joins the product's epilogue and the operation between
    the projection and the product is gone. Changes rounding, not more than reordering a sum does.
    """

    argument: ClassVar[str] = "smartmem-sink-scales"
    example: ClassVar[str] = "transforms/sink_scales/attention_scores.mlir"

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        sink_scales(op)
