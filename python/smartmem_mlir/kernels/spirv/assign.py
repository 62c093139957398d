"""Which tensors live in images.

An image's texels are not the bytes of the buffer that IREE knows, so an image tensor must be written by a shader of
ours and read by shaders of ours only. Weights are copied into images when the module is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir

from smartmem_mlir.kernels.spirv.kernel import Kernel
from smartmem_mlir.kernels.spirv.vectors import WIDTH
from smartmem_mlir.transforms.view_ops import shape_of


@dataclass(frozen=True)
class ImageShape:
    """A tensor as a two-dimensional image.

    Args:
        split: The first of its dimensions that run along x; those before it run along y.
        extents: Texels along x and y.
    """

    split: int
    extents: tuple[int, int]


@dataclass(frozen=True)
class Images:
    """The tensors in images.

    Args:
        results: Shape of a kernel's result, by the kernel's number.
        weights: Shape of a kernel's packed weight, by the kernel's number.
    """

    results: dict[int, ImageShape]
    weights: dict[int, ImageShape]


def assign_images(kernels: Sequence[Kernel], packed_shapes: Sequence[Sequence[int] | None], limit: int) -> Images:
    """Puts into images what can be there.

    Args:
        kernels: All shaders of a module.
        packed_shapes: Shape of each one's packed weight, None where it has none.
        limit: Texels that an image may have along an axis.
    """
    number_of = {kernel.op: number for number, kernel in enumerate(kernels)}
    results: dict[int, ImageShape] = {}
    for number, kernel in enumerate(kernels):
        found = _readers(kernel.op.results[0], kernels, number_of)
        if found is None:
            continue
        accesses = [(kernel, kernel.output), *found]
        fitting = (i for i in _shapes(shape_of(kernel.op.results[0]), limit) if _all_fit(accesses, i.split))
        chosen = next(fitting, None)
        if chosen is not None:
            results[number] = chosen
    weights = {
        number: image
        for number, shape in enumerate(packed_shapes)
        if shape is not None
        for image in list(_shapes(shape, limit))[:1]
        if image.split == len(shape) - 1
    }
    return Images(results, weights)


def _all_fit(accesses: Iterable[tuple[Kernel, ir.Value]], split: int) -> bool:
    return all(kernel.fits(value, split) for kernel, value in accesses)


def _readers(
    result: ir.Value, kernels: Sequence[Kernel], number_of: dict[ir.Operation, int]
) -> list[tuple[Kernel, ir.Value]] | None:
    """The kernels that read a tensor and what they call it; None when something else reads it."""
    found = []
    for use in result.uses:
        owner = use.owner.operation
        if owner not in number_of:
            return None
        kernel = kernels[number_of[owner]]
        argument = owner.regions[0].blocks[0].arguments[use.operand_number]
        if argument in kernel.arguments:
            found.append((kernel, argument))
    return found


def _shapes(shape: Sequence[int], limit: int) -> Iterable[ImageShape]:
    """Images within the limit, with the fewest dimensions along x first."""
    for split in reversed(range(len(shape))):
        width, height = prod(shape[split:]), prod(shape[:split])
        if width % WIDTH == 0 and width // WIDTH <= limit and height <= limit:
            yield ImageShape(split, (width // WIDTH, height))
