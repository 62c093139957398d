"""Where a tensor can be other than in a buffer: images within a device's limits, and texel buffers.

The tensor's trailing dimensions run along x, four elements a texel, the leading ones along y. Where a side is longer
than the device allows, x is cut into pieces that lie below each other, and y into layers of an array; coordinates are
quasi-affine expressions like any others, so whether a kernel can evaluate them is decided as for every address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from smartmem_mlir.index_maps.expr import Expr, linearize
from smartmem_mlir.kernels.spirv.vectors import WIDTH
from smartmem_mlir.layouts.memory import Memory
from smartmem_mlir.transforms.structured import Access


@dataclass(frozen=True)
class MemoryLimits:
    """What a device's images can hold; the defaults are what Vulkan 1.1 guarantees.

    Args:
        extent: Texels along x and y.
        layers: Of an array.
        texels: Of a texel buffer.
    """

    extent: int = 4096
    layers: int = 256
    texels: int = 65536


@dataclass(frozen=True)
class ImageShape:
    """A tensor as an image.

    Args:
        split: The first of its dimensions that run along x; those before it run along y.
        extents: Texels along x and y and, of an array, its layers.
        pieces: Parts that x is cut into, which lie below each other.
    """

    split: int
    extents: tuple[int, ...]
    pieces: int = 1

    @property
    def memory(self) -> Memory:
        """What Vulkan calls it."""
        return "image2d" if len(self.extents) == 2 else "image2d_array"

    @property
    def is_folded(self) -> bool:
        """Whether a side was too long."""
        return self.pieces > 1 or len(self.extents) > 2

    def coordinates(self, access: Access, shape: Sequence[int]) -> tuple[Expr, ...]:
        """Those of an element: x in elements, y and the layer."""
        x = linearize(access[self.split :], shape[self.split :])
        y = linearize(access[: self.split], shape[: self.split])
        if self.pieces > 1:
            row = self.extents[0] * WIDTH
            x, y = x % row, y * self.pieces + x // row
        if len(self.extents) == 2:
            return x, y
        return x, y % self.extents[1], y // self.extents[1]


@dataclass(frozen=True)
class TexelShape:
    """A tensor as a texel buffer: the bytes of the buffer, read through the texture path.

    Args:
        texels: How many.
    """

    texels: int

    @property
    def memory(self) -> Memory:
        """What Vulkan calls it."""
        return "texel_buffer"

    @property
    def extents(self) -> tuple[int, ...]:
        """Along its one axis."""
        return (self.texels,)


Placement = ImageShape | TexelShape


def image_shapes(shape: Sequence[int], limits: MemoryLimits) -> Iterator[ImageShape]:
    """Images within the limits: whole ones with the fewest dimensions along x first, then arrays, then cut ones."""
    sizes = [(split, prod(shape[split:]) // WIDTH, prod(shape[:split])) for split in _splits(shape)]
    for split, width, height in sizes:
        if width <= limits.extent and height <= limits.extent:
            yield ImageShape(split, (width, height))
    for split, width, height in sizes:
        if width <= limits.extent < height:
            # Whole dimensions along the layers leave nothing to divide, even if there are more layers.
            whole = {prod(shape[:outer]) for outer in range(split)}
            for layers in sorted({_parts(height, limits.extent), *whole}):
                if layers <= limits.layers and height // layers <= limits.extent:
                    yield ImageShape(split, (width, height // layers, layers))
    for split, width, height in sizes:
        pieces = _parts(width, limits.extent)
        layers = _parts(height * pieces, limits.extent)
        if pieces > 1 and layers <= limits.layers:
            sides = (width // pieces, height * pieces // layers)
            yield ImageShape(split, sides if layers == 1 else (*sides, layers), pieces)


def texel_shape(shape: Sequence[int], limits: MemoryLimits) -> TexelShape | None:
    """A tensor as a texel buffer, None where it exceeds the limit or is of no whole texels."""
    texels, rest = divmod(prod(shape), WIDTH)
    return TexelShape(texels) if rest == 0 and texels <= limits.texels else None


def _splits(shape: Sequence[int]) -> Iterator[int]:
    """The dimensions from which on the rest is of whole texels, the last one first."""
    return (split for split in reversed(range(len(shape))) if prod(shape[split:]) % WIDTH == 0)


def _parts(length: int, most: int) -> int:
    """The fewest equal parts of a side that are no longer than that."""
    if length <= most:
        return 1
    return next(parts for parts in range(-(-length // most), length + 1) if length % parts == 0)
