"""Programs around one contraction, for kernels: each with its result by NumPy in double precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import arithmetic as math_
import numpy as np
from case_programs import partition, reverse
from program import Array, Program, Tensor, tensor_type


def weight(p: Program, shape: Sequence[int]) -> Tensor:
    """A constant that the compiler may store in any order, as a weight is."""
    seed = sum((i + 1) * extent for i, extent in enumerate(shape)) + len(p.lines)
    array = np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)
    # Bytes: to write many numbers in decimals takes longer than to compile with them.
    text = f'arith.constant dense<"0x{array.tobytes().hex().upper()}"> : {tensor_type(shape)}'
    return p.append(text, array.astype(np.float64))


def matmul(m: int, k: int, n: int) -> Callable[[Program], Tensor]:
    return lambda p: math_.matmul(p, p.argument([m, k]), weight(p, [k, n]))


def transposed_weight(m: int, k: int, n: int) -> Callable[[Program], Tensor]:
    return lambda p: math_.matmul(p, p.argument([m, k]), p.transpose(weight(p, [n, k]), [1, 0]))


def einsum(equation: str, lhs: Sequence[int], rhs: Sequence[int], constant: bool) -> Callable[[Program], Tensor]:
    def build(p: Program) -> Tensor:
        x = p.argument(lhs)
        return math_.contract(p, x, weight(p, rhs) if constant else p.argument(rhs), equation)

    return build


def gram(p: Program) -> Tensor:
    """A tensor times itself: what would be laid out anew for one factor is read as it is for the other."""
    x = p.argument([20, 9])
    return math_.contract(p, x, x, "mk,nk->mn")


def scattered(p: Program) -> Tensor:
    """A product, a bias and a residual whose elements stand apart for successive columns of the weight."""
    product = math_.contract(p, p.argument([21, 70]), weight(p, [70, 37]), "mk,kn->nm")
    return math_.binary(p, math_.binary(p, product, p.argument([37, 21])), weight(p, [37]), "mulf", [0])


def bias_and_tanh(p: Program) -> Tensor:
    product = math_.matmul(p, p.argument([13, 20]), weight(p, [20, 37]))
    return math_.unary(p, math_.binary(p, product, weight(p, [37]), "addf", [1]), "math.tanh")


def gelu(p: Program) -> Tensor:
    """x * (1 + erf(x)), so that a value is used twice."""
    from math import erf

    product = math_.matmul(p, p.argument([9, 16]), weight(p, [16, 24]))
    order = [0, 1]
    body = (
        "%e = math.erf %x0 : f32\n    %one = arith.constant 1.0 : f32\n    %s = arith.addf %e, %one : f32\n"
        "    %y = arith.mulf %s, %x0 : f32\n    linalg.yield %y : f32"
    )
    array = product.array * (1 + np.vectorize(erf)(product.array))
    return p.generic([(product, order)], order, "pp", body, array)


def two_products(p: Program) -> Tensor:
    """A sum of two products: one of the kernels reads what the other wrote."""
    x = p.argument([10, 12])
    return math_.binary(p, math_.matmul(p, x, weight(p, [12, 7])), math_.matmul(p, x, weight(p, [12, 7])))


def joined_with_a_constant(p: Program) -> Tensor:
    """Columns of the left factor that are in no memory."""
    x = p.concat([p.argument([6, 5]), p.fill(0.5, [6, 3])], 1)
    return math_.matmul(p, x, weight(p, [8, 10]))


def shared_sum(p: Program) -> Tensor:
    """The product is read by an operation that joins and by one that cannot: a mean of its rows."""
    product = math_.matmul(p, p.argument([6, 8]), weight(p, [8, 10]))
    mean = math_.scale(p, math_.reduce(p, product, [1]), 0.125)
    return math_.binary(p, product, mean, "subf", [0])


def windows(p: Program) -> Tensor:
    """Rows gathered from windows, and written back to where they came from plus a residual."""
    x = p.argument([14, 7, 10])
    rows = p.collapse(partition(p, x, 7), [[0, 1], [2]])
    product = p.expand(math_.matmul(p, rows, weight(p, [10, 10])), [[2, 49], [10]])
    return math_.binary(p, x, reverse(p, product, 7, (14, 7, 10)))


def rolled_windows(p: Program) -> Tensor:
    x = p.argument([14, 14, 5])
    moved = p.roll(p.roll(x, 11, 0), 11, 1)
    rows = p.collapse(partition(p, moved, 7), [[0, 1], [2]])
    product = p.expand(math_.matmul(p, rows, weight(p, [5, 5])), [[4, 49], [5]])
    back = reverse(p, product, 7, (14, 14, 5))
    return math_.binary(p, x, p.roll(p.roll(back, 3, 0), 3, 1))


def convolution(
    image: Sequence[int],
    kernel: Sequence[int],
    stride: int = 1,
    pad: int = 0,
    dilation: int = 1,
    groups: int = 1,
    border: float = 0.0,
) -> Callable[[Program], Tensor]:
    """[C, H, W] with weights [F, C / groups, R, S], as importers write it: channels first, a padded image."""

    def build(p: Program) -> Tensor:
        c, h, w = image
        f, per_group, r, s = kernel
        x = p.argument([c, h, w])
        k = weight(p, [f, per_group, r, s])
        if pad:
            x = p.pad(x, [0, pad, pad], [0, pad, pad], border)
        oh, ow = (
            (x.shape[1] - dilation * (r - 1) - 1) // stride + 1,
            (x.shape[2] - dilation * (s - 1) - 1) // stride + 1,
        )
        array = _convolve(x.array, k.array, stride, dilation, groups, oh, ow)
        split = p.expand(x, [[groups, c // groups], [x.shape[1]], [x.shape[2]]])
        weights = p.expand(k, [[groups, f // groups], [per_group], [r], [s]])
        reads = [(split, [0, 4, f"d2 * {stride} + d5 * {dilation}", f"d3 * {stride} + d6 * {dilation}"])]
        body = "%m = arith.mulf %x0, %x1 : f32\n    %y = arith.addf %m, %o : f32\n    linalg.yield %y : f32"
        init = p.fill(0.0, [groups, f // groups, oh, ow])
        grouped = array.reshape(groups, f // groups, oh, ow)
        made = p.generic([*reads, (weights, [0, 1, 4, 5, 6])], [0, 1, 2, 3], "pppprrr", body, grouped, init=init.name)
        return p.collapse(made, [[0, 1], [2], [3]])

    return build


def grouped(rows: int, channels: int, stride: int) -> Callable[[Program], Tensor]:
    """A 3x3 convolution of two groups of so many channels each, a residual and what is positive of their sum."""

    def build(p: Program) -> Tensor:
        image = (2 * channels, rows, 9)
        made = convolution(image, (2 * channels, channels, 3, 3), stride, pad=1, groups=2)(p)
        with_residual = math_.binary(p, made, p.argument(made.shape))
        return math_.binary(p, with_residual, p.fill(0.0, made.shape), "maximumf")

    return build


def depthwise(image: Sequence[int], size: int, stride: int = 1, pad: int = 0) -> Callable[[Program], Tensor]:
    """[C, H, W] with weights [C, R, S]."""

    def build(p: Program) -> Tensor:
        x = p.argument(image)
        if pad:
            x = p.pad(x, [0, pad, pad], [0, pad, pad])
        c = image[0]
        k = weight(p, [c, size, size])
        oh, ow = ((extent - size) // stride + 1 for extent in x.shape[1:])
        array = _convolve(x.array, k.array[:, None], stride, 1, c, oh, ow)
        reads = [(x, [0, f"d1 * {stride} + d3", f"d2 * {stride} + d4"]), (k, [0, 3, 4])]
        body = "%m = arith.mulf %x0, %x1 : f32\n    %y = arith.addf %m, %o : f32\n    linalg.yield %y : f32"
        init = p.fill(0.0, array.shape)
        return p.generic(reads, [0, 1, 2], "ppprr", body, array, init=init.name)

    return build


def _convolve(x: Array, k: Array, stride: int, dilation: int, groups: int, oh: int, ow: int) -> Array:
    f, per_group, r, s = k.shape
    result = np.zeros((f, oh, ow))
    for g in range(groups):
        channels = x[g * per_group : (g + 1) * per_group]
        filters = slice(g * f // groups, (g + 1) * f // groups)
        for i in range(r):
            for j in range(s):
                rows = slice(i * dilation, i * dilation + stride * (oh - 1) + 1, stride)
                columns = slice(j * dilation, j * dilation + stride * (ow - 1) + 1, stride)
                result[filters] += np.einsum("fc,chw->fhw", k[filters, :, i, j], channels[:, rows, columns])
    return result


def two_convolutions(p: Program) -> Tensor:
    """The first writes the padded image that the second reads; a residual reads it without the padding."""
    first = convolution((4, 9, 8), (20, 4, 3, 3), pad=1)(p)
    positive = math_.binary(p, first, p.fill(0.0, first.shape), "maximumf")
    padded = p.pad(positive, [0, 1, 1], [0, 1, 1], 0.0)
    k = weight(p, [6, 20, 3, 3])
    array = _convolve(padded.array, k.array, 1, 1, 1, 9, 8)
    body = "%m = arith.mulf %x0, %x1 : f32\n    %y = arith.addf %m, %o : f32\n    linalg.yield %y : f32"
    init = p.fill(0.5, array.shape)
    reads = [(padded, [3, "d1 + d4", "d2 + d5"]), (k, [0, 3, 4, 5])]
    return p.generic(reads, [0, 1, 2], "ppprrr", body, array + 0.5, init=init.name)


def separable(p: Program) -> Tensor:
    """Channels become innermost behind the first convolution, and the depthwise one takes its lanes from them."""
    first = convolution((4, 8, 9), (19, 4, 1, 1))(p)
    x = p.pad(first, [0, 1, 1], [0, 1, 1])
    k = weight(p, [19, 3, 3])
    array = _convolve(x.array, k.array[:, None], 1, 1, 19, 8, 9)
    body = "%m = arith.mulf %x0, %x1 : f32\n    %y = arith.addf %m, %o : f32\n    linalg.yield %y : f32"
    init = p.fill(0.0, array.shape)
    return p.generic([(x, [0, "d1 + d3", "d2 + d4"]), (k, [0, 3, 4])], [0, 1, 2], "ppprr", body, array, init=init.name)


def scaled_rows(p: Program) -> Tensor:
    """One factor is scaled along the reduction by numbers that its own means give, as in a squeeze-excitation."""
    x = p.argument([23, 18])
    gate = math_.unary(p, math_.scale(p, math_.reduce(p, x, [0]), 0.25), "math.tanh")
    return math_.matmul(p, math_.binary(p, x, gate, "mulf", [1]), weight(p, [18, 40]))


def excited(p: Program) -> Tensor:
    """Channels of an image are scaled in front of a pointwise convolution."""
    x, gate = p.argument([12, 5, 6]), p.argument([12])
    scaled = math_.binary(p, x, gate, "mulf", [0])
    k = weight(p, [20, 12])
    array = np.einsum("chw,fc->fhw", scaled.array, k.array)
    body = "%m = arith.mulf %x0, %x1 : f32\n    %y = arith.addf %m, %o : f32\n    linalg.yield %y : f32"
    init = p.fill(0.0, array.shape)
    return p.generic([(scaled, [3, 1, 2]), (k, [0, 3])], [0, 1, 2], "pppr", body, array, init=init.name)


def stacked(p: Program) -> Tensor:
    """A product of two tensors side by side: two sums, one after the other, and no tensor that holds both."""
    x, y = p.argument([6, 5]), p.argument([7, 6])
    return math_.matmul(p, p.concat([x, p.transpose(y, [1, 0])], 1), weight(p, [12, 20]))


def stacked_images(size: int, enlarged: bool) -> Callable[[Program], Tensor]:
    """Three images stacked along the channels in front of a convolution; one of them may be half as large."""

    def build(p: Program) -> Tensor:
        middle = p.argument([5, 3, 4] if enlarged else [5, 6, 8])
        if enlarged:
            grown = p.broadcast(middle, [5, 3, 2, 4, 2], [2, 4])
            middle = p.collapse(grown, [[0], [1, 2], [3, 4]])
        x = p.concat([p.argument([2, 6, 8]), middle, p.argument([9, 6, 8])], 0)
        k = weight(p, [11, 16, size, size])
        array = _convolve(x.array, k.array, 1, 1, 1, 7 - size, 9 - size)
        body = "%m = arith.mulf %x0, %x1 : f32\n    %y = arith.addf %m, %o : f32\n    linalg.yield %y : f32"
        init = p.fill(0.0, array.shape)
        reads = [(x, [3, "d1 + d4", "d2 + d5"]), (k, [0, 3, 4, 5])]
        return p.generic(reads, [0, 1, 2], "ppprrr", body, array, init=init.name)

    return build


PROGRAMS: dict[str, Callable[[Program], Tensor]] = {
    **{
        f"matmul_{m}x{k}x{n}": matmul(m, k, n)
        for m, k, n in ((1, 7, 40), (5, 1, 33), (29, 70, 96), (31, 3, 1), (2, 9, 4), (40, 256, 36))
    },
    **{f"transposed_{m}x{k}x{n}": transposed_weight(m, k, n) for m, k, n in ((4, 13, 65), (15, 8, 16))},
    "rows_of_two_ranks": einsum("abk,kn->abn", (3, 5, 11), (11, 18), True),
    "batched": einsum("bmk,bkn->bmn", (3, 5, 11), (3, 11, 18), False),
    "batched_constant": einsum("bmk,bnk->bmn", (3, 5, 11), (3, 18, 11), True),
    "two_reductions": einsum("mkl,klhd->mhd", (6, 3, 4), (3, 4, 2, 17), True),
    "heads_outermost": einsum("mk,khd->hmd", (6, 8), (8, 3, 20), True),
    "keys_transposed": einsum("bmk,bnk->bmn", (2, 6, 8), (2, 9, 8), False),
    "keys_of_many_rows": einsum("bmk,bnk->bmn", (2, 18, 8), (2, 9, 8), False),
    "positions": einsum("mhk,nhk->mhn", (20, 2, 6), (37, 2, 6), False),
    "gram": gram,
    "scattered": scattered,
    "columns_first": einsum("mk,kn->nm", (6, 8), (8, 20), True),
    "vector": einsum("k,kn->n", (12,), (12, 50), True),
    "bias_and_tanh": bias_and_tanh,
    "gelu": gelu,
    "two_products": two_products,
    "joined_with_a_constant": joined_with_a_constant,
    "shared_sum": shared_sum,
    "windows": windows,
    "rolled_windows": rolled_windows,
    "conv_1x1": convolution((12, 5, 6), (20, 12, 1, 1)),
    "conv_3x3": convolution((5, 9, 8), (18, 5, 3, 3), pad=1),
    "conv_stride": convolution((3, 15, 13), (32, 3, 7, 7), stride=2, pad=3),
    "conv_in_blocks": convolution((3, 33, 64), (40, 3, 5, 5), stride=2, pad=2, border=0.5),
    "conv_of_part_lines": convolution((4, 3, 840), (33, 4, 5, 5), pad=2),
    "conv_dilated": convolution((4, 11, 12), (9, 4, 3, 3), pad=2, dilation=2),
    "conv_groups": convolution((12, 6, 7), (24, 4, 3, 3), pad=1, groups=3),
    "conv_groups_of_one": convolution((6, 6, 7), (12, 1, 3, 3), pad=1, groups=6),
    **{
        f"grouped_{channels}_stride_{stride}": grouped(rows, channels, stride)
        for channels, rows, stride in ((4, 7, 1), (8, 6, 2), (20, 7, 2), (24, 8, 1), (40, 5, 2), (56, 6, 1))
    },
    **{
        f"channels_last_{channels}": einsum("mgk,gkn->mgn", (17, 2, 13), (2, 13, channels), True)
        for channels in (4, 8, 20, 24, 28, 40, 56, 72)
    },
    "depthwise_in_blocks": depthwise((36, 24, 16), 3, pad=1),
    "depthwise_3x3": depthwise((19, 8, 9), 3, pad=1),
    "depthwise_stride": depthwise((32, 9, 9), 5, stride=2, pad=2),
    "two_convolutions": two_convolutions,
    "separable": separable,
    "scaled_rows": scaled_rows,
    "excited": excited,
    "stacked": stacked,
    "stacked_images": stacked_images(3, enlarged=False),
    "stacked_enlarged": stacked_images(1, enlarged=True),
}


def build(name: str) -> Program:
    """The program of a name."""
    p = Program(name)
    p.results.append(PROGRAMS[name](p))
    return p
