"""Small networks whose layout transformations tools of this kind got wrong, refused or did not remove.

Each function returns a program with its reference results; sizes are small, and odd where the pattern allows it.
"""

from __future__ import annotations

from collections.abc import Callable

import arithmetic as math_
import numpy as np
from program import Program, Tensor


def heads_of(p: Program, x: Tensor, count: int) -> Tensor:
    """[N, count*d] -> [count, N, d]."""
    tokens, width = x.shape
    return p.transpose(p.expand(x, [[tokens], [count, width // count]]), [1, 0, 2])


def attend(p: Program, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """softmax(q k^T / 4 + mask) v over rank-3 operands [heads, N, d]."""
    scores = math_.matmul(p, math_.scale(p, q, 0.25, "operand"), p.transpose(k, [0, 2, 1]))
    if mask is not None:
        scores = math_.binary(p, scores, mask, "addf", [1, 2] if mask.rank == 2 else None)
    return math_.matmul(p, math_.softmax(p, scores, 2), v)


def partition(p: Program, x: Tensor, size: int) -> Tensor:
    """[H, W, C] -> [windows, size*size, C], by an expansion, a transpose and a collapse."""
    h, w, c = x.shape
    split = p.expand(x, [[h // size, size], [w // size, size], [c]])
    return p.collapse(p.transpose(split, [0, 2, 1, 3, 4]), [[0, 1], [2, 3], [4]])


def reverse(p: Program, x: Tensor, size: int, shape: tuple[int, ...]) -> Tensor:
    """The inverse of `partition`."""
    h, w, c = shape
    split = p.expand(x, [[h // size, w // size], [size, size], [c]])
    return p.collapse(p.transpose(split, [0, 2, 1, 3, 4]), [[0, 1], [2, 3], [4]])


def roll2(p: Program, x: Tensor, by: int) -> Tensor:
    """Both leading axes by `by`, backwards if negative: slices and concatenations."""
    return p.roll(p.roll(x, by % x.shape[0], 0), by % x.shape[1], 1)


def convolve(p: Program, x: Tensor, w: Tensor) -> Tensor:
    """[C, H, W] by [K, C, R, S], or depthwise by [C, R, S], without padding."""
    c, r, s = w.shape[-3:]
    depthwise = w.rank == 3
    h, width = x.shape[1] - r + 1, x.shape[2] - s + 1
    windows = np.lib.stride_tricks.sliding_window_view(x.array, (r, s), (1, 2))
    if depthwise:
        array = np.einsum("chwrs,crs->chw", windows, w.array)
        maps, iterators = [["d0", "d1 + d3", "d2 + d4"], [0, 3, 4], [0, 1, 2]], "ppprr"
    else:
        array = np.einsum("chwrs,kcrs->khw", windows, w.array)
        maps, iterators = [["d3", "d1 + d4", "d2 + d5"], [0, 3, 4, 5], [0, 1, 2]], "ppprrr"
    assert array.shape == (c if depthwise else w.shape[0], h, width)
    body = "%m = arith.mulf %x0, %x1 : f32\n    %y = arith.addf %m, %o : f32\n    linalg.yield %y : f32"
    init = p.fill(0.0, array.shape)
    return p.generic([(x, maps[0]), (w, maps[1])], maps[2], iterators, body, array, init=init.name)


def linear(p: Program, x: Tensor, width: int) -> Tensor:
    """Rows times a weight that is stored [out, in]."""
    return math_.matmul(p, x, p.transpose(p.argument([width, x.shape[1]]), [1, 0]))


def windows_to_linear(p: Program) -> Tensor:
    x = p.collapse(p.argument([1, 14, 14, 5]), [[0, 1], [2], [3]])
    return linear(p, p.collapse(partition(p, x, 7), [[0, 1], [2]]), 3)


def permute_six_axes(p: Program) -> Tensor:
    return math_.unary(p, p.transpose(p.argument([1, 2, 2, 7, 7, 4]), [0, 1, 3, 2, 4, 5]))


def fused_projection(p: Program) -> Tensor:
    """One projection, split in three after one transpose of five axes; the transpose must not become three."""
    batch, tokens, heads, depth = 2, 7, 3, 4
    rows = p.collapse(p.argument([batch, tokens, 5]), [[0, 1], [2]])
    split = p.expand(linear(p, rows, 3 * heads * depth), [[batch, tokens], [3, heads, depth]])
    turned = p.transpose(split, [2, 0, 3, 1, 4])
    parts = [
        p.collapse(
            p.slice(turned, [i, 0, 0, 0, 0], [1, batch, heads, tokens, depth], [1] * 5, drop=True), [[0, 1], [2], [3]]
        )
        for i in range(3)
    ]
    mixed = p.expand(attend(p, *parts), [[batch, heads], [tokens], [depth]])
    return p.collapse(p.transpose(mixed, [0, 2, 1, 3]), [[0, 1], [2, 3]])


def split_projection(p: Program) -> Tensor:
    """As `fused_projection`, up to the three parts; the third is returned."""
    split = p.expand(linear(p, p.argument([7, 5]), 36), [[7], [3, 3, 4]])
    turned = p.transpose(split, [1, 2, 0, 3])
    parts = [p.slice(turned, [i, 0, 0, 0], [1, 3, 7, 4], [1] * 4, drop=True) for i in range(3)]
    p.results += parts[:2]
    return parts[2]


def attention_rank_3(p: Program) -> Tensor:
    q, k, v = (p.argument([3, 7, 4]) for _ in range(3))
    return attend(p, q, k, v)


def attention_rank_4(p: Program) -> Tensor:
    """The same as `attention_rank_3` with a batch axis of extent 1, contractions as generics."""
    q, k, v = (p.expand(p.argument([3, 7, 4]), [[1, 3], [7], [4]]) for _ in range(3))
    scores = math_.contract(p, math_.scale(p, q, 0.25, "operand"), p.transpose(k, [0, 1, 3, 2]), "bhnd,bhdm->bhnm")
    mixed = math_.contract(p, math_.softmax(p, scores, 3), v, "bhnm,bhmd->bhnd")
    return p.collapse(mixed, [[0, 1], [2], [3]])


def masked_attention(p: Program) -> Tensor:
    """A mask [1, 1, S, S] that all heads share."""
    q, k, v = (p.argument([3, 7, 4]) for _ in range(3))
    mask = p.collapse(p.argument([1, 1, 7, 7]), [[0, 1, 2], [3]])
    return attend(p, q, k, v, mask)


def attention_block(p: Program) -> Tensor:
    """Projections, heads apart, attention, heads together, projection: every transpose inside an operator."""
    x = p.argument([7, 12])
    q, k, v = (heads_of(p, linear(p, x, 12), 3) for _ in range(3))
    mixed = p.collapse(p.transpose(attend(p, q, k, v), [1, 0, 2]), [[0], [1, 2]])
    return linear(p, mixed, 12)


def permuted_weight(p: Program) -> Tensor:
    """A weight [1, 1, in, out] turned by (3, 1, 2, 0) and collapsed in front of a 1x1 convolution as a product."""
    w = p.transpose(p.argument([5, 1, 1, 6]), [3, 1, 2, 0])
    image = p.collapse(p.argument([5, 3, 7]), [[0], [1, 2]])
    return p.expand(math_.matmul(p, p.collapse(w, [[0], [1, 2, 3]]), image), [[6], [3, 7]])


def token_mixing(p: Program) -> Tensor:
    """Per-channel affine, a product over the tokens between two transposes, residual."""
    batch, tokens, channels = 2, 7, 5
    x = p.argument([batch, tokens, channels])
    scaled = math_.binary(p, x, p.argument([channels]), "mulf", [2])
    affine = math_.binary(p, scaled, p.argument([channels]), "addf", [2])
    turned = p.collapse(p.transpose(affine, [0, 2, 1]), [[0, 1], [2]])
    mixed = p.expand(linear(p, turned, tokens), [[batch, channels], [tokens]])
    return math_.binary(p, x, p.transpose(mixed, [0, 2, 1]))


def depth_to_space(p: Program, mode: str = "CRD") -> Tensor:
    """Blocks of 2 from 12 channels on a 3x5 image, each of whose elements is then used."""
    x = p.argument([12, 3, 5])
    parts, order = ([3, 2, 2], [0, 3, 1, 4, 2]) if mode == "CRD" else ([2, 2, 3], [2, 3, 0, 4, 1])
    split = p.transpose(p.expand(x, [parts, [3], [5]]), order)
    return math_.unary(p, p.collapse(split, [[0], [1, 2], [3, 4]]))


def one_query(p: Program, keys: int) -> Tensor:
    """q [1, h, 1, d] against k [1, h, N, d], transposed."""
    q = p.collapse(p.argument([1, 3, 1, 4]), [[0, 1], [2], [3]])
    k = p.collapse(p.transpose(p.argument([1, 3, keys, 4]), [0, 1, 3, 2]), [[0, 1], [2], [3]])
    return math_.softmax(p, math_.matmul(p, q, k), 2)


def convnext_block(p: Program) -> Tensor:
    """Depthwise 7x7, channels last, a norm over the channels, a product."""
    padded = p.pad(p.argument([5, 6, 7]), [0, 3, 3], [0, 3, 3])
    image = p.transpose(convolve(p, padded, p.argument([5, 7, 7])), [1, 2, 0])
    return linear(p, p.collapse(math_.layer_norm(p, image, [2]), [[0, 1], [2]]), 4)


def grouped_convolution(p: Program, expand_first: bool) -> Tensor:
    """Three groups of two channels; the group axis appears before or after the padding and the flip of the weight."""
    x, w = p.argument([6, 4, 5]), p.argument([6, 2, 3, 3])
    if expand_first:
        x = p.pad(p.expand(x, [[3, 2], [4], [5]]), [0, 0, 1, 1], [0, 0, 1, 1])
        w = p.flip(p.expand(w, [[3, 2], [2], [3], [3]]), 3)
    else:
        x = p.expand(p.pad(x, [0, 1, 1], [0, 1, 1]), [[3, 2], [6], [7]])
        w = p.expand(p.flip(w, 2), [[3, 2], [2], [3], [3]])
    windows = np.lib.stride_tricks.sliding_window_view(x.array, (3, 3), (2, 3))
    array = np.einsum("gchwrs,gkcrs->gkhw", windows, w.array)
    body = "%m = arith.mulf %x0, %x1 : f32\n    %y = arith.addf %m, %o : f32\n    linalg.yield %y : f32"
    init = p.fill(0.0, array.shape)
    reads = [(x, ["d0", "d4", "d2 + d5", "d3 + d6"]), (w, [0, 1, 4, 5, 6])]
    made = p.generic(reads, [0, 1, 2, 3], "pppprrr", body, array, init=init.name)
    return p.collapse(made, [[0, 1], [2], [3]])


def pixel_shuffle_tail(p: Program) -> Tensor:
    """A convolution to c*r*r channels, a clamp, and the channels spread over the image."""
    image = convolve(p, p.argument([4, 5, 6]), p.argument([12, 4, 3, 3]))
    positive = math_.binary(p, image, p.fill(0.0, image.shape), "maximumf")
    split = p.transpose(p.expand(positive, [[3, 2, 2], [3], [4]]), [0, 3, 1, 4, 2])
    return p.collapse(split, [[0], [1, 2], [3, 4]])


def shifted_windows(p: Program) -> Tensor:
    """Roll by (-3, -3), windows, a norm and a product, and all the way back to a residual."""
    x = p.argument([14, 14, 4])
    rows = p.collapse(partition(p, roll2(p, math_.layer_norm(p, x, [2]), -3), 7), [[0, 1], [2]])
    windows = p.expand(linear(p, rows, 4), [[4, 49], [4]])
    return math_.binary(p, x, roll2(p, reverse(p, windows, 7, x.shape), 3))


def patch_merging(p: Program) -> Tensor:
    """Four strided slices side by side, a norm, a product."""
    x = p.argument([6, 10, 4])
    corners = [p.slice(x, [i, j, 0], [3, 5, 4], [2, 2, 1]) for j in (0, 1) for i in (0, 1)]
    merged = math_.layer_norm(p, p.concat(corners, 2), [2])
    return linear(p, p.collapse(merged, [[0, 1], [2]]), 8)


CASES: dict[str, Callable[[Program], Tensor]] = {
    "windows_to_linear": windows_to_linear,
    "permute_six_axes": permute_six_axes,
    "fused_projection": fused_projection,
    "split_projection": split_projection,
    "attention_rank_3": attention_rank_3,
    "attention_rank_4": attention_rank_4,
    "masked_attention": masked_attention,
    "attention_block": attention_block,
    "permuted_weight": permuted_weight,
    "token_mixing": token_mixing,
    "depth_to_space_crd": depth_to_space,
    "depth_to_space_dcr": lambda p: depth_to_space(p, "DCR"),
    "one_query_5_keys": lambda p: one_query(p, 5),
    "one_query_6_keys": lambda p: one_query(p, 6),
    "one_query_7_keys": lambda p: one_query(p, 7),
    "convnext_block": convnext_block,
    "groups_then_padding": lambda p: grouped_convolution(p, True),
    "padding_then_groups": lambda p: grouped_convolution(p, False),
    "pixel_shuffle_tail": pixel_shuffle_tail,
    "shifted_windows": shifted_windows,
    "patch_merging": patch_merging,
}


def build(name: str) -> Program:
    """The program of a case, as a function of that name."""
    p = Program(name)
    p.results.append(CASES[name](p))
    return p
