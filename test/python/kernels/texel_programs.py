"""Programs in which one shader writes what another reads: tensors that can be images, and some that cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import arithmetic as math_
from case_programs import partition, reverse
from kernel_programs import weight
from program import Program, Tensor


def chain(m: int, k: int, n: int, last: int) -> Callable[[Program], Tensor]:
    """Two products: the tensor between them is read along its columns, which are the sum of the second."""

    def build(p: Program) -> Tensor:
        first = math_.matmul(p, p.argument([m, k]), weight(p, [k, n]))
        return math_.matmul(p, first, weight(p, [n, last]))

    return build


def keys(m: int, k: int, n: int) -> Callable[[Program], Tensor]:
    """Two projections and the product of one with the other, transposed: both are read along the sum."""

    def build(p: Program) -> Tensor:
        queries = math_.matmul(p, p.argument([m, k]), weight(p, [k, n]))
        scores = math_.contract(p, queries, math_.matmul(p, p.argument([m, k]), weight(p, [k, n])), "mk,nk->mn")
        return math_.softmax(p, scores, 1)

    return build


def values(p: Program) -> Tensor:
    """A right factor that is computed, read along the lanes."""
    right = math_.matmul(p, p.argument([24, 16]), weight(p, [16, 32]))
    return math_.matmul(p, p.argument([10, 24]), right)


def norm_and_residual(p: Program) -> Tensor:
    """A tensor that a norm and an addition read."""
    x = math_.matmul(p, p.argument([30, 20]), weight(p, [20, 48]))
    normal = math_.layer_norm(p, x, [1])
    return math_.binary(p, math_.matmul(p, normal, weight(p, [48, 48])), x)


def windows(p: Program) -> Tensor:
    """Rows that are written in windows and read back, as in Swin."""
    x = p.argument([14, 14, 16])
    product = math_.contract(p, partition(p, x, 7), weight(p, [16, 32]), "wtc,cd->wtd")
    projected = math_.contract(p, product, weight(p, [32, 16]), "wtd,dc->wtc")
    return math_.binary(p, reverse(p, projected, 7, (14, 14, 16)), x)


def uneven(p: Program) -> Tensor:
    """Rows of 37 elements are no whole texels: they stay in a buffer."""
    first = math_.matmul(p, p.argument([13, 20]), weight(p, [20, 37]))
    return math_.matmul(p, first, weight(p, [37, 8]))


PROGRAMS: dict[str, Callable[[Program], Tensor]] = {
    "chain": chain(21, 24, 40, 12),
    "chain_of_one_row": chain(1, 64, 32, 100),
    "chain_of_uneven_rows": chain(13, 7, 4, 5),
    "keys": keys(20, 12, 16),
    "keys_of_49": keys(49, 8, 32),
    "values": values,
    "norm_and_residual": norm_and_residual,
    "windows": windows,
    "uneven": uneven,
}


@dataclass(frozen=True)
class Variant:
    """How programs are compiled.

    Args:
        storage: The pass's option.
        extent: Largest image along each axis.
        layers: Of an array of images.
        texels: Of a texel buffer.
        rates: How fast memories are, as the device's attribute says it; empty where nobody has measured.
    """

    storage: str
    extent: int = 4096
    layers: int = 256
    texels: int = 65536
    rates: str = ""

    def edit(self, text: str) -> str:
        """The device's attribute with these limits and rates."""
        limits = "image_extent = 4096, image_layers = 256, texel_elements = 65536"
        assert limits in text
        edited = f"image_extent = {self.extent}, image_layers = {self.layers}, texel_elements = {self.texels}"
        return text.replace(limits, edited + (f", memory_rates = {{{self.rates}}}" if self.rates else ""))


def _rates(buffer: float, image: float, texel_buffer: float, dispatch_ns: float) -> str:
    named = {"buffer": buffer, "image": image, "texel_buffer": texel_buffer, "dispatch_ns": dispatch_ns}
    return ", ".join(f"{name} = {value:e} : f64" for name, value in named.items())


VARIANTS: dict[str, Variant] = {
    "images": Variant("image"),
    "arrays": Variant("image", extent=5, layers=64),
    "texel_buffers": Variant("image", extent=2, layers=1),
    "nothing_fits": Variant("image", extent=2, layers=1, texels=1),
    "unmeasured": Variant("auto"),
    "fast_images": Variant("auto", rates=_rates(1, 1000, 1, 1)),
    "fast_texel_buffers": Variant("auto", rates=_rates(1, 1, 1000, 1)),
    "fast_buffers": Variant("auto", rates=_rates(10, 1, 1, 1)),
}


def build(name: str) -> Program:
    """The program of a name."""
    p = Program(name)
    p.results.append(PROGRAMS[name](p))
    return p


__all__: Sequence[str] = ["PROGRAMS", "VARIANTS", "Variant", "build"]
