"""Operations and attributes of the smartmem dialect (generated bindings and the extension's classes)."""

from __future__ import annotations

from collections.abc import Sequence

from mlir.ir import ArrayAttr, Attribute, Context, register_attribute_builder

from smartmem_mlir._smartmem import LayoutAttr, OpClassAttr, PieceAttr

from ._smartmem_enum_gen import *
from ._smartmem_ops_gen import *

OP_CLASS_ATTR = "smartmem.op_class"
"""Name of the discardable attribute that holds an operation's class."""


@register_attribute_builder("SmartMem_PieceArrayAttr")
def _piece_array(pieces: Sequence[Attribute] | ArrayAttr, context: Context) -> ArrayAttr:
    return pieces if isinstance(pieces, ArrayAttr) else ArrayAttr.get(list(pieces), context=context)
