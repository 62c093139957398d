"""Programs in which one shader writes what another reads: tensors that can be images, and some that cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
IN_BUFFERS = {"uneven"}
"""No tensor of these but a weight can be an image."""


def build(name: str) -> Program:
    """The program of a name."""
    p = Program(name)
    p.results.append(PROGRAMS[name](p))
    return p


__all__: Sequence[str] = ["IN_BUFFERS", "PROGRAMS", "build"]
