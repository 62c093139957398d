"""Questions about the layout of a tensor type."""

from __future__ import annotations

from math import prod

import mlir.ir as ir

from smartmem_mlir._smartmem import LayoutAttr


def get_layout(type: ir.Type) -> LayoutAttr | None:
    """The layout of a ranked tensor; None for a dense row-major one."""
    encoding = ir.RankedTensorType(type).encoding
    return encoding if isinstance(encoding, LayoutAttr) else None


def same_layout(a: LayoutAttr | None, b: LayoutAttr | None) -> bool:
    """Whether two layouts are equal; None is the dense row-major one."""
    return (a is None and b is None) or (a is not None and b is not None and a == b)


def with_layout(type: ir.Type, layout: LayoutAttr | None) -> ir.RankedTensorType:
    """The same tensor in another layout; None makes it dense and row-major.

    Raises:
        ValueError: The layout does not fit the tensor.
    """
    tensor = ir.RankedTensorType(type)
    try:
        return ir.RankedTensorType.get(tensor.shape, tensor.element_type, layout, loc=ir.Location.unknown())
    except ir.MLIRError as error:
        raise ValueError("; ".join(diagnostic.message for diagnostic in error.error_diagnostics)) from None


def physical_shape(type: ir.Type) -> tuple[int, ...]:
    """Extents of a tensor in memory, padding included."""
    tensor = ir.RankedTensorType(type)
    layout = get_layout(tensor)
    return tuple(tensor.shape) if layout is None else tuple(layout.physical_shape(tensor.shape))


def element_bytes(type: ir.Type) -> int:
    """Bytes of one element in memory: whole bytes, so an i1 takes one.

    Raises:
        ValueError: The type is no integer, float or index.
    """
    if isinstance(type, ir.IndexType):
        return 8
    if not isinstance(type, (ir.IntegerType, ir.FloatType)):
        raise ValueError(f"{type} has no size in bytes")
    width: int = type.width
    return (width + 7) // 8


def physical_bytes(type: ir.Type) -> int:
    """Bytes that a tensor takes in memory, padding included."""
    return prod(physical_shape(type)) * element_bytes(ir.RankedTensorType(type).element_type)
