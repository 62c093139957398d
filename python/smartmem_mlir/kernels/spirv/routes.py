"""From a tensor's coordinates to places in its memory.

A route is one split address for each coordinate of the memory: a buffer has one, an image two. Those along which
vectors run count elements and are multiples of four wherever a vector is accessed; they are divided symbolically, so
that no kernel divides for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from smartmem_mlir.index_maps.expr import Expr, linearize
from smartmem_mlir.kernels.addresses import SplitAddress, Tiling, split_address
from smartmem_mlir.kernels.spirv.plan import Direction, direction_of_address, packed_address, packed_row
from smartmem_mlir.kernels.spirv.storage import Binding, Image, VectorMemory
from smartmem_mlir.kernels.spirv.vectors import WIDTH
from smartmem_mlir.transforms.structured import Access

Route = tuple[SplitAddress, ...]


def quarter(expr: Expr) -> Expr:
    """A quarter of an expression that is visibly a multiple of four."""
    return Expr(expr.const // WIDTH, tuple((atom, coefficient // WIDTH) for atom, coefficient in expr.terms))


def route(access: Access, shape: Sequence[int], tiling: Tiling, binding: Binding) -> Route:
    """The route of an access that :func:`find_route` has found."""
    found = find_route(access, shape, tiling, binding.split if isinstance(binding, Image) else None)
    assert found is not None, "the plan has checked every access"
    return found


def find_route(access: Access, shape: Sequence[int], tiling: Tiling, split: int | None) -> Route | None:
    """The route of an access.

    Args:
        access: Coordinates of the tensor over the iteration space.
        shape: The tensor's.
        tiling: The walk over the iteration space.
        split: For an image, the first dimension along x; None for a buffer.

    Returns:
        None when a coordinate is no sum that a kernel can evaluate.
    """
    if split is None:
        address = split_address(linearize(access, shape), tiling)
        return None if address is None else (address,)
    x = split_address(linearize(access[split:], shape[split:]), tiling)
    y = split_address(linearize(access[:split], shape[:split]), tiling)
    return None if x is None or y is None else (x, y)


def packed_route(tiling: Tiling, binding: Binding) -> Route:
    """The route of a packed weight: in an image, lanes run along x."""
    if isinstance(binding, Image):
        return SplitAddress(packed_row(tiling), Expr(0), 1), _packed_column(tiling)
    return (packed_address(tiling),)


def _packed_column(tiling: Tiling) -> SplitAddress:
    row = tiling.panels_per_lane_range * WIDTH
    address = packed_address(tiling)
    outer = address.outer - packed_row(tiling)

    def divided(expr: Expr) -> Expr:
        return Expr(expr.const // row, tuple((atom, coefficient // row) for atom, coefficient in expr.terms))

    return SplitAddress(divided(outer), divided(address.inner), 0)


def fits_image(found: Route, tiling: Tiling, direction: Direction) -> bool:
    """Whether vectors of a direction run along x, from multiples of four, and stay on one y."""
    x, y = found
    whole = direction_of_address(x, tiling) is direction
    return whole and (y.lanes == 0 or direction is Direction.TERMS)


def is_divided(binding: Binding, coordinate: int) -> bool:
    """Whether vectors run along a coordinate of a memory."""
    return isinstance(binding, VectorMemory) and coordinate == 0
