"""Contractions of f16 as importers spell them, for cooperative matrices: each with its result in double precision.

Factors are f16 and sums f32, which are rounded to f16 before anything else happens to them. Weights are such that a
sum is about one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import erf, prod, sqrt

import arithmetic as math_
import numpy as np
from case_programs import partition, reverse
from program import Program, Tensor, tensor_type

Build = Callable[[Program], Tensor]


def weight(p: Program, shape: Sequence[int], terms: int) -> Tensor:
    """A constant that is multiplied in sums of so many terms."""
    seed = sum((i + 1) * extent for i, extent in enumerate(shape)) + len(p.lines)
    most = 3 / sqrt(terms)
    array = np.random.default_rng(seed).uniform(-most, most, shape).astype(np.float16)
    text = f'arith.constant dense<"0x{array.tobytes().hex().upper()}"> : {tensor_type(shape, "f16")}'
    return p.append(text, array.astype(np.float64), "f16")


def half(p: Program, x: Tensor) -> Tensor:
    return math_.cast(p, x, "f16")


def with_bias(p: Program, x: Tensor, axis: int = -1) -> Tensor:
    axis %= x.rank
    return math_.binary(p, x, weight(p, [x.shape[axis]], 9), "addf", [axis])


def gelu(p: Program, x: Tensor) -> Tensor:
    """x * (1 + erf(x))."""
    order = list(range(x.rank))
    body = (
        "%e = math.erf %x0 : f16\n    %one = arith.constant 1.0 : f16\n    %s = arith.addf %e, %one : f16\n"
        "    %y = arith.mulf %s, %x0 : f16\n    linalg.yield %y : f16"
    )
    array = x.array * (1 + np.vectorize(erf)(x.array))
    return p.generic([(x, order)], order, "p" * x.rank, body, array, element="f16")


def linear(m: int, k: int, n: int, transposed: bool = False) -> Build:
    """A product with a weight, plus a bias."""

    def build(p: Program) -> Tensor:
        w = p.transpose(weight(p, [n, k], k), [1, 0]) if transposed else weight(p, [k, n], k)
        return with_bias(p, half(p, math_.matmul(p, p.argument([m, k], "f16"), w)))

    return build


def product(equation: str, lhs: Sequence[int], rhs: Sequence[int], constant: bool = False) -> Build:
    """Of two arguments, or of one and a weight."""

    def build(p: Program) -> Tensor:
        left, right = equation.split("->")[0].split(",")
        written = equation.split("->")[1]
        extents = dict(zip(left + right, (*lhs, *rhs), strict=True))
        terms = prod(extent for letter, extent in extents.items() if letter not in written)
        x = p.argument(lhs, "f16")
        y = weight(p, rhs, terms) if constant else p.argument(rhs, "f16")
        return half(p, math_.contract(p, x, y, equation))

    return build


def perceptron(p: Program) -> Tensor:
    """Two products: bias and activation follow the first, bias and a residual that others compute the second."""
    x = p.argument([49, 32], "f16")
    hidden = gelu(p, with_bias(p, half(p, math_.matmul(p, x, weight(p, [32, 64], 32)))))
    return math_.binary(p, with_bias(p, half(p, math_.matmul(p, hidden, weight(p, [64, 32], 64)))), x)


def left_in_f32(p: Program) -> Tensor:
    """What is summed stays f32, and starts from a tensor."""
    x, start = p.argument([33, 48], "f16"), p.argument([33, 32])
    return math_.matmul(p, x, weight(p, [48, 32], 48), start)


def query_slices(p: Program) -> Tensor:
    """Scores of two heads, whose queries and keys are slices of one tensor."""
    fused = p.argument([48, 2 * 2 * 32], "f16")
    parts = p.expand(fused, [[48], [2, 2, 32]])
    queries, keys = (p.slice(parts, [0, i, 0, 0], [48, 1, 2, 32], [1, 1, 1, 1], drop=True) for i in range(2))
    return half(p, math_.contract(p, queries, keys, "mhk,nhk->hmn"))


def attention(p: Program) -> Tensor:
    """Scores, their softmax in f32 as importers spell it, and the product with the values."""
    q, k, v = (p.argument([2, 48, 32], "f16") for _ in range(3))
    scores = half(p, math_.matmul(p, q, p.transpose(k, [0, 2, 1])))
    weights = half(p, math_.softmax(p, math_.cast(p, scores, "f32"), 2))
    return half(p, math_.matmul(p, weights, v))


def windows(p: Program) -> Tensor:
    """Rows are tokens of windows, and go back to where they came from."""
    x = p.argument([14, 14, 32], "f16")
    rows = p.collapse(partition(p, x, 7), [[0, 1], [2]])
    made = p.expand(with_bias(p, half(p, math_.matmul(p, rows, weight(p, [32, 32], 32)))), [[4, 49], [32]])
    return math_.binary(p, reverse(p, made, 7, (14, 14, 32)), p.argument([14, 14, 32], "f16"))


def image(p: Program, height: int, width: int, channels: int) -> Tensor:
    """An argument, channels last in memory, as [1, channels, height, width]."""
    return p.transpose(p.argument([1, height, width, channels], "f16"), [0, 3, 1, 2])


def convolve(p: Program, x: Tensor, filters: int, size: int, stride: int = 1) -> Tensor:
    """The named operation, whose sum starts from the bias, of an image that is padded by half the window."""
    channels, pad = x.shape[1], size // 2
    if pad:
        x = p.pad(x, [0, 0, pad, pad], [0, 0, pad, pad])
    w = weight(p, [filters, channels, size, size], channels * size * size)
    seen = np.lib.stride_tricks.sliding_window_view(x.array, (size, size), (2, 3))[:, :, ::stride, ::stride]
    array = np.einsum("bchwrs,fcrs->bfhw", seen, w.array)
    start = p.broadcast(math_.cast(p, weight(p, [filters], 9), "f32"), array.shape, [0, 2, 3])
    text = (
        f"linalg.conv_2d_nchw_fchw {{dilations = dense<1> : vector<2xi64>, strides = dense<{stride}> : vector<2xi64>}} "
        f"ins({x.name}, {w.name} : {x.type}, {w.type}) outs({start.name} : {start.type}) -> {start.type}"
    )
    return half(p, p.append(text, array + start.array))


def convolution(height: int, width: int, channels: int, filters: int, size: int, stride: int = 1) -> Build:
    def build(p: Program) -> Tensor:
        return p.transpose(convolve(p, image(p, height, width, channels), filters, size, stride), [0, 2, 3, 1])

    return build


def two_convolutions(p: Program) -> Tensor:
    """The first writes what is positive of its sums inside a border of zeros, which the second reads."""
    first = convolve(p, image(p, 5, 16, 16), 32, 1)
    positive = math_.binary(p, first, p.fill(0.0, first.shape, "f16"), "maximumf")
    return p.transpose(convolve(p, positive, 16, 3), [0, 2, 3, 1])


def f32(p: Program) -> Tensor:
    x, y = p.argument([32, 32]), p.argument([32, 32])
    return math_.matmul(p, x, y)


def mixed(p: Program) -> Tensor:
    """Only one factor is f16."""
    return math_.contract(p, p.argument([32, 32], "f16"), p.argument([32, 32]), "mk,kn->mn")


def constant_factor(p: Program) -> Tensor:
    """A weight of which all elements are the same number."""
    w = p.append(f"arith.constant dense<0.25> : {tensor_type([32, 32], 'f16')}", np.full([32, 32], 0.25), "f16")
    return half(p, math_.matmul(p, p.argument([77, 32], "f16"), w))


def shifted(p: Program) -> Tensor:
    """Rows that begin between blocks of eight elements."""
    x = p.slice(p.argument([77, 40], "f16"), [0, 4], [77, 32], [1, 1])
    return half(p, math_.matmul(p, x, weight(p, [32, 48], 32)))


def uneven_keys(p: Program) -> Tensor:
    """A right factor whose rows are no whole blocks."""
    y = p.slice(p.argument([32, 52], "f16"), [0, 0], [32, 48], [1, 1])
    return half(p, math_.matmul(p, p.argument([77, 32], "f16"), y))


def stacked(p: Program) -> Tensor:
    """A product of two tensors side by side: two sums, one after the other."""
    x = p.concat([p.argument([77, 16], "f16"), p.argument([77, 32], "f16")], 1)
    return half(p, math_.matmul(p, x, weight(p, [48, 32], 48)))


def scaled_rows(p: Program) -> Tensor:
    """One factor is scaled along the sum by numbers that are computed."""
    x = p.argument([77, 32], "f16")
    gate = half(p, math_.unary(p, math_.scale(p, math_.reduce(p, math_.cast(p, x, "f32"), [0]), 0.25)))
    return half(p, math_.matmul(p, math_.binary(p, x, gate, "mulf", [1]), weight(p, [32, 48], 32)))


def own_residual(p: Program) -> Tensor:
    """The left factor is also read by lanes."""
    x = p.argument([77, 32], "f16")
    return math_.binary(p, half(p, math_.matmul(p, x, weight(p, [32, 32], 32))), x)


WITH_MATRICES: dict[str, Build] = {
    "one_matrix": linear(16, 16, 16),
    **{
        f"linear_{m}x{k}x{n}": linear(m, k, n)
        for m, k, n in ((77, 96, 48), (197, 32, 64), (49, 80, 112), (32, 16, 32), (64, 48, 192), (17, 768, 16))
    },
    "transposed_weight": linear(77, 32, 48, transposed=True),
    "weight_as_rows": linear(32, 48, 24, transposed=True),  # 24 lanes are no whole matrices, and 32 rows are
    "values": product("mk,kn->mn", (50, 48), (48, 32)),
    "keys": product("mk,nk->mn", (50, 32), (48, 32)),
    "heads_keys": product("bmk,bnk->bmn", (3, 20, 32), (3, 48, 32)),
    "heads_values": product("bmk,bkn->bmn", (3, 20, 48), (3, 48, 32)),
    "heads_inside": product("mhk,nhk->hmn", (20, 3, 16), (32, 3, 16)),
    "heads_of_a_weight": product("bmk,bnk->bmn", (3, 20, 32), (3, 48, 32), constant=True),
    "heads_outermost": product("mk,khd->hmd", (20, 32), (32, 3, 16), constant=True),
    "columns_first": product("mk,kn->nm", (35, 32), (32, 48), constant=True),
    "two_sums": product("mlk,lkn->mn", (35, 3, 16), (3, 16, 32), constant=True),
    "two_sums_of_arguments": product("mlk,lkn->mn", (35, 3, 16), (3, 16, 32)),
    "rows_of_two_ranks": product("abk,kn->abn", (3, 7, 32), (32, 48), constant=True),
    "attention": attention,
    "perceptron": perceptron,
    "left_in_f32": left_in_f32,
    "windows": windows,
    "conv_1x1": convolution(7, 9, 32, 48, 1),
    "conv_3x3_width_16": convolution(5, 16, 16, 32, 3),
    "conv_3x3_width_32": convolution(3, 32, 16, 16, 3),
    "conv_3x3_width_9": convolution(5, 9, 16, 16, 3),
    "conv_stride": convolution(6, 32, 16, 32, 3, 2),
    "two_convolutions": two_convolutions,
}
WITH_NARROW_MATRICES: dict[str, Build] = {
    "lanes_24": linear(77, 32, 24),
    "terms_24": linear(77, 24, 48),
}
"""Whose extents are multiples of 8."""
WITHOUT_MATRICES: dict[str, Build] = {
    "f32": f32,
    "mixed": mixed,
    "constant_factor": constant_factor,
    "few_rows": linear(9, 32, 48),
    "lanes_20": linear(77, 32, 20),
    "terms_20": linear(77, 20, 48),
    "shifted": shifted,
    "uneven_keys": uneven_keys,
    "stacked": stacked,
    "scaled_rows": scaled_rows,
    "own_residual": own_residual,
    "query_slices": query_slices,
}
PROGRAMS = WITH_MATRICES | WITH_NARROW_MATRICES | WITHOUT_MATRICES


def build(name: str) -> Program:
    """The program of a name."""
    p = Program(name)
    p.results.append(PROGRAMS[name](p))
    return p
