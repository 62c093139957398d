"""Operations and attributes of the smartmem dialect (generated bindings and the extension's classes)."""

from __future__ import annotations

from collections.abc import Sequence

from mlir.ir import ArrayAttr, Attribute, Context, register_attribute_builder

from smartmem_mlir._smartmem import LayoutAttr, OpClassAttr, PieceAttr
from smartmem_mlir.dialects._smartmem_ops_gen import (
    ConvertLayoutOp,
    GroupOp,
    ParameterOp,
    ViewOp,
    YieldOp,
    convert_layout,
    group,
    parameter,
    view,
    yield_,
)

__all__ = [
    "OP_CLASS_ATTR",
    "ConvertLayoutOp",
    "GroupOp",
    "LayoutAttr",
    "OpClassAttr",
    "ParameterOp",
    "PieceAttr",
    "ViewOp",
    "YieldOp",
    "convert_layout",
    "group",
    "parameter",
    "view",
    "yield_",
]

OP_CLASS_ATTR = "smartmem.op_class"
"""Name of the discardable attribute that holds an operation's class."""


@register_attribute_builder("SmartMem_PieceArrayAttr")
def _piece_array(pieces: Sequence[Attribute] | ArrayAttr, context: Context) -> ArrayAttr:
    return pieces if isinstance(pieces, ArrayAttr) else ArrayAttr.get(list(pieces), context=context)
