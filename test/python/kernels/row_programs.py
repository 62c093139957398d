"""Programs that go over rows: normalisations and softmaxes, with their results by NumPy in double precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import arithmetic as math_
import numpy as np
from case_programs import partition
from kernel_programs import weight
from program import Program, Tensor


def layer_norm(shape: Sequence[int], axes: Sequence[int]) -> Callable[[Program], Tensor]:
    return lambda p: math_.layer_norm(p, p.argument(shape), axes)


def scaled_norm(p: Program) -> Tensor:
    normal = math_.layer_norm(p, p.argument([11, 40]), [1])
    return math_.binary(p, math_.binary(p, normal, weight(p, [40]), "mulf", [1]), weight(p, [40]), "addf", [1])


def softmax(shape: Sequence[int], axis: int) -> Callable[[Program], Tensor]:
    return lambda p: math_.softmax(p, p.argument(shape), axis)


def gathered_norm(p: Program) -> Tensor:
    """Rows of shifted windows."""
    x = p.roll(p.roll(p.argument([14, 14, 20]), 11, 0), 11, 1)
    return math_.layer_norm(p, partition(p, x, 7), [2])


def merged_norm(p: Program) -> Tensor:
    """Rows of four strided slices side by side."""
    x = p.argument([6, 10, 12])
    corners = [p.slice(x, [i, j, 0], [3, 5, 12], [2, 2, 1]) for j in (0, 1) for i in (0, 1)]
    return math_.layer_norm(p, p.concat(corners, 2), [2])


def padded_norm(p: Program) -> Tensor:
    """A norm whose result is read with a border around it only."""
    return p.pad(math_.layer_norm(p, p.argument([4, 5, 24]), [2]), [1, 2, 0], [1, 2, 0])


def log_softmax(p: Program) -> Tensor:
    x = p.argument([5, 70])
    top = math_.reduce(p, x, [1], "maximumf")
    centred = math_.binary(p, x, top, "subf", [0])
    total = math_.reduce(p, math_.unary(p, centred, "math.exp"), [1])
    body = "%l = math.log %x0 : f32\n    linalg.yield %l : f32"
    log = p.generic([(total, [0])], [0], "p", body, np.log(total.array))
    return math_.binary(p, centred, log, "subf", [0])


def norm_of_cubes(p: Program) -> Tensor:
    """A power by an integer, in the body of a step over rows."""
    normal = math_.layer_norm(p, p.argument([6, 40]), [1])
    body = "%three = arith.constant 3 : i32\n    %y = math.fpowi %x0, %three : f32, i32\n    linalg.yield %y : f32"
    return p.generic([(normal, [0, 1])], [0, 1], "pp", body, normal.array**3)


def guarded_softmax(p: Program) -> Tensor:
    """A softmax as PyTorch exports it: a row without a finite score, which has none here, would become zeros."""
    x = math_.softmax(p, p.argument([6, 49]), 1)
    body = "%y = arith.cmpf une, %x0, %x1 : f32\n    linalg.yield %y : i1"
    undefined = p.generic([(x, [0, 1])] * 2, [0, 1], "pp", body, np.isnan(x.array), element="i1")
    body = "%zero = arith.constant 0.0 : f32\n    %y = arith.select %x0, %zero, %x1 : f32\n    linalg.yield %y : f32"
    return p.generic([(undefined, [0, 1]), (x, [0, 1])], [0, 1], "pp", body, x.array)


def average(shape: Sequence[int], axes: Sequence[int]) -> Callable[[Program], Tensor]:
    """A mean over outer axes and a function of it: neighbours in memory belong to different sums."""

    def build(p: Program) -> Tensor:
        x = p.argument(shape)
        mean = math_.scale(p, math_.reduce(p, x, axes), 1 / prod(shape[axis] for axis in axes))
        return math_.unary(p, mean, "math.tanh")

    return build


def group_norm(p: Program) -> Tensor:
    """Scaled by group and by channel, and with a bias of each pixel."""
    normal = math_.layer_norm(p, p.argument([12, 9, 8, 4]), [0, 1, 3])
    scaled = math_.binary(p, normal, weight(p, [8]), "mulf", [2])
    scaled = math_.binary(p, scaled, weight(p, [8, 4]), "mulf", [2, 3])
    return math_.binary(p, scaled, weight(p, [12, 9]), "addf", [0, 1])


def distance_from_the_maximum(p: Program) -> Tensor:
    x = p.argument([10, 8, 32, 2])
    return math_.binary(p, x, math_.reduce(p, x, [0, 1, 3], "maximumf"), "subf", [2])


SHADER_PROGRAMS: dict[str, Callable[[Program], Tensor]] = {
    "guarded_softmax": guarded_softmax,
    "average_of_pixels": average([14, 8, 40], [0, 1]),
    "average_of_odd_channels": average([5, 4, 13], [0, 1]),
    "average_of_two_channels": average([32, 2], [0]),
    "average_of_batches": average([3, 16, 24], [1]),
    "average_between": average([4, 3, 8, 20], [0, 2]),
}
"""What is a kernel for shaders by a rule of their own."""

PROGRAMS: dict[str, Callable[[Program], Tensor]] = {
    "norm_96": layer_norm([7, 96], [1]),
    "norm_13": layer_norm([3, 5, 13], [2]),
    "norm_of_two_axes": layer_norm([4, 6, 24], [1, 2]),
    "norm_300": layer_norm([9, 300], [1]),
    "norm_of_channels_first": layer_norm([24, 5, 6], [0]),
    "scaled_norm": scaled_norm,
    "norm_of_cubes": norm_of_cubes,
    "gathered_norm": gathered_norm,
    "merged_norm": merged_norm,
    "padded_norm": padded_norm,
    "norm_of_groups": layer_norm([40, 30, 3, 24], [0, 1, 3]),
    "norm_of_narrow_groups": layer_norm([70, 60, 5, 4], [0, 1, 3]),
    "softmax_49": softmax([6, 49], 1),
    "softmax_8": softmax([3, 4, 8], 2),
    "softmax_1000": softmax([2, 1000], 1),
    "softmax_of_rows": softmax([20, 6], 0),
    "log_softmax": log_softmax,
}
PACKED_PROGRAMS: dict[str, Callable[[Program], Tensor]] = {
    "packed_norm_of_fours": group_norm,
    "packed_norm_of_tens": layer_norm([9, 8, 16, 10], [0, 1, 3]),
    "packed_norm_of_channels": layer_norm([12, 9, 48], [0, 1]),
    "packed_norm_of_two_lines": layer_norm([70, 256], [0]),
    "packed_norm_of_images": layer_norm([3, 80, 32], [1]),
    "packed_maximum": distance_from_the_maximum,
    "packed_average": average([14, 8, 64], [0, 1]),
}
"""Rows that share vectors on a CPU."""

LEFT_TO_IREE = {
    "norm_of_channels_first",  # channels are not adjacent
    "softmax_of_rows",
}


def build(name: str) -> Program:
    """The program of a name."""
    p = Program(name)
    p.results.append((PROGRAMS | SHADER_PROGRAMS | PACKED_PROGRAMS)[name](p))
    return p
