"""Conversions that meet cancel; conversions in front of elementwise operations move behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir
from mlir.rewrite import PatternRewriter

from smartmem_mlir.dialects import smartmem
from smartmem_mlir.dialects.layouts import get_layout, physical_bytes, same_layout, with_layout
from smartmem_mlir.transforms.pass_base import Pass
from smartmem_mlir.transforms.patterns import Pattern, apply_patterns

CONVERT = "smartmem.convert_layout"
ELEMENTWISE_DIALECTS = ("arith.", "math.")
"""On tensors of one shape every operation of these dialects works element by element."""


def is_elementwise(op: ir.Operation) -> bool:
    """Whether the one result is computed element by element from operands of the same shape.

    Holds for `arith` and `math` operations and for a `linalg.generic` that reads and writes through identity maps.
    """
    if len(op.results) != 1 or not op.operands:
        return False
    types = [value.type for value in (*op.operands, *op.results)]
    if not all(isinstance(type, ir.RankedTensorType) for type in types):
        return False
    if len({tuple(ir.RankedTensorType(type).shape) for type in types}) != 1:
        return False
    if op.name == "linalg.generic":
        return _is_elementwise_generic(op)
    return bool(op.name.startswith(ELEMENTWISE_DIALECTS))


def _is_elementwise_generic(op: ir.Operation) -> bool:
    maps = [ir.AffineMapAttr(attr).value for attr in ir.ArrayAttr(op.attributes["indexing_maps"])]
    body = op.regions[0].blocks[0]
    return (
        all(map == ir.AffineMap.get_identity(map.n_dims) for map in maps)
        and all("parallel" in str(kind) for kind in ir.ArrayAttr(op.attributes["iterator_types"]))
        and all(inner.operation.name != "linalg.index" for inner in body.operations)
    )


def is_layout_free(value: ir.Value) -> bool:
    """Whether a tensor can be had in any layout for nothing: uninitialised, or one value everywhere."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    if owner.name == "tensor.empty":
        return not owner.operands
    if owner.name != "arith.constant":
        return False
    attr = owner.attributes["value"]
    return isinstance(attr, ir.DenseElementsAttr) and bool(attr.is_splat)


def _materialize_free(value: ir.Value, type: ir.RankedTensorType) -> ir.Value:
    """The layout-free tensor again, in another layout."""
    copy = value.owner.clone()
    if copy.name == "arith.constant":
        splat = ir.DenseElementsAttr(copy.attributes["value"]).get_splat_value()
        copy.attributes["value"] = ir.DenseElementsAttr.get_splat(type, splat)
    copy.results[0].set_type(type)
    return copy.results[0]


def _as_conversion(value: ir.Value) -> ir.Operation | None:
    owner = value.owner
    return owner if not isinstance(owner, ir.Block) and owner.name == CONVERT else None


def compose_conversions(op: Any, rewriter: PatternRewriter) -> bool:
    """A to B to C becomes A to C, with the later reason, or the earlier one where the later has none."""
    earlier = _as_conversion(op.source)
    if earlier is None:
        return False
    reason = op.reason or earlier.opview.reason
    if earlier.operands[0].type == op.result.type:
        rewriter.replace_op(op.operation, [earlier.operands[0]])
    else:
        direct = smartmem.ConvertLayoutOp(op.result.type, earlier.operands[0], reason=reason)
        rewriter.replace_op(op.operation, [direct.result])
    return True


def sink_conversion(op: Any, rewriter: PatternRewriter) -> bool:
    """Converts the result of an elementwise operation instead of its operands.

    Applies when every operand is converted from one and the same layout for this operation alone (or is free in any
    layout), and when the one conversion moves no more bytes than those that go. So the cost never rises, and each
    application brings a conversion closer to the end of its function: the rewriting ends.
    """
    users = {use.owner.operation for use in op.result.uses}
    if len(users) != 1:
        return False
    (user,) = users
    if not is_elementwise(user):
        return False
    source_layout = get_layout(op.source.type)
    conversions: list[ir.Operation] = []
    for value in user.operands:
        conversion = _as_conversion(value)
        if conversion is None:
            if is_layout_free(value):
                continue
            return False
        same_source = same_layout(get_layout(conversion.operands[0].type), source_layout)
        only_here = all(use.owner.operation == user for use in value.uses)
        if not (same_source and only_here):
            return False
        if conversion not in conversions:
            conversions.append(conversion)
    result_type = user.results[0].type
    if not same_layout(get_layout(result_type), get_layout(op.result.type)):
        return False
    try:
        new_type = with_layout(result_type, source_layout)
    except ValueError:  # the layout cannot hold the result's element type
        return False
    removed = sum(physical_bytes(c.operands[0].type) + physical_bytes(c.results[0].type) for c in conversions)
    if physical_bytes(new_type) + physical_bytes(result_type) > removed:
        return False
    with ir.InsertionPoint(user), user.location:
        operands = [
            conversion.operands[0]
            if (conversion := _as_conversion(value)) is not None
            else _materialize_free(value, new)
            for value, new in ((value, with_layout(value.type, source_layout)) for value in user.operands)
        ]
        moved = user.clone()
        for i, value in enumerate(operands):
            moved.operands[i] = value
        moved.results[0].set_type(new_type)
        reason = next((c.opview.reason for c in conversions if c.opview.reason), None)
        converted = smartmem.ConvertLayoutOp(result_type, moved.results[0], reason=reason)
    rewriter.replace_op(user, [converted.result])
    return True


@dataclass(frozen=True)
class FoldLayouts(Pass):
    """Cancel conversions that meet, after moving them behind elementwise operations.

    A conversion of a conversion becomes one, and none when it returns to where it began. When all operands of an
    elementwise operation (`arith`, `math`, or a `linalg.generic` with identity maps) are converted from the same layout
    for it alone, the operation computes in that layout and its result is converted instead, provided that this moves no
    more bytes. Neither rewrite raises the number of conversions or their bytes.
    """

    argument: ClassVar[str] = "smartmem-fold-layouts"
    anchor: ClassVar[str] = "func.func"
    example: ClassVar[str] = "sink_through_add.mlir"

    def run(self, op: ir.Operation) -> None:
        """Rewrites the function to a fixed point."""
        apply_patterns(
            op, [Pattern(CONVERT, compose_conversions, benefit=2), Pattern(CONVERT, sink_conversion)], max_iterations=64
        )
