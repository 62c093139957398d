"""From a tensor's coordinates to places in its memory.

A route is one split address for each coordinate of the memory: a buffer has one, an image two, an array three. Those
along which vectors run count elements and are multiples of four wherever a vector is accessed; they are divided
symbolically, so that no kernel divides for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from smartmem_mlir.index_maps.expr import Dim, Expr, dim, linearize
from smartmem_mlir.kernels.addresses import SplitAddress, Tiling, split_address
from smartmem_mlir.kernels.spirv.placements import ImageShape
from smartmem_mlir.kernels.spirv.plan import Direction, direction_of_address, is_multiple, packed_address
from smartmem_mlir.kernels.spirv.storage import Binding, Image, VectorMemory
from smartmem_mlir.kernels.spirv.vectors import WIDTH
from smartmem_mlir.transforms.structured import Access

Route = tuple[SplitAddress, ...]


def quarter(expr: Expr) -> Expr:
    """A quarter of an expression that is visibly a multiple of four."""
    return Expr(expr.const // WIDTH, tuple((atom, coefficient // WIDTH) for atom, coefficient in expr.terms))


def route(access: Access, shape: Sequence[int], tiling: Tiling, binding: Binding) -> Route:
    """The route of an access that :func:`find_route` has found."""
    found = find_route(access, shape, tiling, binding.shape if isinstance(binding, Image) else None)
    assert found is not None, "the plan has checked every access"
    return found


def find_route(access: Access, shape: Sequence[int], tiling: Tiling, image: ImageShape | None) -> Route | None:
    """The route of an access.

    Args:
        access: Coordinates of the tensor over the iteration space.
        shape: The tensor's.
        tiling: The walk over the iteration space.
        image: The image that it is in; None for a buffer or a texel buffer.

    Returns:
        None when a coordinate is no sum that a kernel can evaluate.
    """
    coordinates = (linearize(access, shape),) if image is None else image.coordinates(access, shape)
    found = tuple(address for each in coordinates if (address := split_address(each, tiling)) is not None)
    return found if len(found) == len(coordinates) else None


def packed_route(tiling: Tiling, binding: Binding) -> Route:
    """The route of a packed weight."""
    if isinstance(binding, Image):
        return route(packed_access(tiling), packed_shape(tiling), tiling, binding)
    return (packed_address(tiling),)


def packed_shape(tiling: Tiling) -> tuple[int, ...]:
    """Of a packed weight: outer panels, reductions, lanes filled up to whole vectors."""
    outer = (tiling.extents[d] for d in tiling.panels)
    return *outer, *tiling.reduction_extents, -(-tiling.extents[tiling.lane] // WIDTH) * WIDTH


def packed_access(tiling: Tiling) -> Access:
    """The element of a packed weight, over the iteration space."""
    return tuple(dim(d) for d in (*tiling.panels, *tiling.reductions, tiling.lane))


def fits_image(found: Route, tiling: Tiling, direction: Direction, image: ImageShape) -> bool:
    """Whether vectors of a direction run along x, from multiples of four, and stay on one y and one layer."""
    x, *rest = found
    whole = direction_of_address(x, tiling) is direction
    stays = direction is Direction.TERMS or all(part.lanes == 0 for part in rest)
    return whole and stays and _is_simple(found, image)


def fits_packed(tiling: Tiling, image: ImageShape) -> bool:
    """Whether a packed weight can be an image."""
    found = find_route(packed_access(tiling), packed_shape(tiling), tiling, image)
    if found is None or not _is_simple(found, image):
        return False
    x, *rest = found
    aligned = x.lanes == 1 and is_multiple(x.outer) and is_multiple(x.inner)
    return aligned and all(part.lanes == 0 for part in rest)


def _is_simple(found: Route, image: ImageShape) -> bool:
    """Whether folding an image leaves no division inside a sum."""
    return not image.is_folded or all(isinstance(atom, Dim) for part in found for atom, _ in part.inner.terms)


def is_divided(binding: Binding, coordinate: int) -> bool:
    """Whether vectors run along a coordinate of a memory."""
    return isinstance(binding, VectorMemory) and coordinate == 0
