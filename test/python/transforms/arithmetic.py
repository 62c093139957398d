"""Arithmetic for :class:`program.Program`: elementwise operators, reductions, normalisations and contractions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from program import Program, Tensor, tensor_type

BINARY = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "maximumf": np.maximum}


def unary(p: Program, x: Tensor, name: str = "math.tanh") -> Tensor:
    function = {"math.tanh": np.tanh, "arith.negf": np.negative, "math.exp": np.exp, "math.absf": np.abs}[name]
    order = list(range(x.rank))
    body = f"%y = {name} %x0 : {x.element}\n    linalg.yield %y : {x.element}"
    return p.generic([(x, order)], order, "p" * x.rank, body, function(x.array), element=x.element)


def binary(p: Program, x: Tensor, y: Tensor, name: str = "addf", aligned: Sequence[int] | None = None) -> Tensor:
    """`x` with `y`, whose axis i is axis `aligned[i]` of `x`; an axis of extent 1 is repeated."""
    order = list(range(x.rank))
    aligned = order if aligned is None else list(aligned)
    reads = ["0" if y.shape[i] == 1 and x.shape[axis] != 1 else axis for i, axis in enumerate(aligned)]
    spread = [1] * x.rank
    for i, axis in enumerate(aligned):
        spread[axis] = y.shape[i]
    moved = y.array.transpose(np.argsort(aligned)).reshape(spread)
    body = f"%z = arith.{name} %x0, %x1 : {x.element}\n    linalg.yield %z : {x.element}"
    array = BINARY[name](x.array, moved) if name in BINARY else x.array / moved
    return p.generic([(x, order), (y, reads)], order, "p" * x.rank, body, array, element=x.element)


def scale(p: Program, x: Tensor, factor: float, spelling: str = "captured") -> Tensor:
    """By a constant: `captured` in the body, or a scalar `operand`."""
    order = list(range(x.rank))
    scalar = p.constant(factor, x.element)
    if spelling == "operand" and x.element == "f32":
        body = "%y = arith.mulf %x0, %x1 : f32\n    linalg.yield %y : f32"
        return p.generic([(x, order), (scalar, [])], order, "p" * x.rank, body, x.array * factor)
    body = f"%y = arith.mulf %x0, {scalar} : {x.element}\n    linalg.yield %y : {x.element}"
    return p.generic([(x, order)], order, "p" * x.rank, body, x.array * factor, element=x.element)


def cast(p: Program, x: Tensor, element: str) -> Tensor:
    """Between f32 and f16 (both computed in double precision here)."""
    order = list(range(x.rank))
    name = "arith.truncf" if element == "f16" else "arith.extf"
    body = f"%y = {name} %x0 : {x.element} to {element}\n    linalg.yield %y : {element}"
    return p.generic([(x, order)], order, "p" * x.rank, body, x.array, element=element)


def reduce(p: Program, x: Tensor, axes: Sequence[int], name: str = "addf", keep: bool = False) -> Tensor:
    """Sum or maximum along axes, which stay with extent 1 if `keep`."""
    kept = [axis for axis in range(x.rank) if axis not in axes]
    writes = [("0" if axis in axes else axis) for axis in range(x.rank)] if keep else kept
    array = (np.sum if name == "addf" else np.max)(x.array, tuple(axes), keepdims=keep)
    init = p.fill(0.0 if name == "addf" else -(2.0**60), array.shape)
    iterators = "".join("r" if axis in axes else "p" for axis in range(x.rank))
    body = f"%y = arith.{name} %x0, %o : f32\n    linalg.yield %y : f32"
    return p.generic([(x, list(range(x.rank)))], writes, iterators, body, array, init=init.name)


def softmax(p: Program, x: Tensor, axis: int, keep: bool = True) -> Tensor:
    aligned = list(range(x.rank)) if keep else [i for i in range(x.rank) if i != axis]
    shifted = binary(p, x, reduce(p, x, [axis], "maximumf", keep), "subf", aligned)
    powers = unary(p, shifted, "math.exp")
    return binary(p, powers, reduce(p, powers, [axis], "addf", keep), "divf", aligned)


def layer_norm(p: Program, x: Tensor, axes: Sequence[int], keep: bool = True) -> Tensor:
    """(x - mean) / sqrt(variance + 2^-10), with the mean subtracted once and used twice."""
    aligned = list(range(x.rank)) if keep else [i for i in range(x.rank) if i not in axes]
    count = prod(x.shape[axis] for axis in axes)
    mean = scale(p, reduce(p, x, axes, "addf", keep), _reciprocal(count))
    centred = binary(p, x, mean, "subf", aligned)
    variance = scale(p, reduce(p, binary(p, centred, centred, "mulf"), axes, "addf", keep), _reciprocal(count))
    order = list(range(variance.rank))
    epsilon = p.constant(2.0**-10)
    body = f"%y = arith.addf %x0, {epsilon} : f32\n    %z = math.rsqrt %y : f32\n    linalg.yield %z : f32"
    root = p.generic([(variance, order)], order, "p" * len(order), body, 1 / np.sqrt(variance.array + 2.0**-10))
    return binary(p, centred, root, "mulf", aligned)


def _reciprocal(count: int) -> float:
    return float(np.float32(1 / count))


def matmul(p: Program, x: Tensor, y: Tensor, start: float | Tensor = 0.0) -> Tensor:
    """Named: `linalg.matmul`, or `linalg.batch_matmul` for rank 3."""
    array = x.array @ y.array
    init = start if isinstance(start, Tensor) else p.fill(start, array.shape)
    name = "matmul" if x.rank == 2 else "batch_matmul"
    text = f"linalg.{name} ins({x.name}, {y.name} : {x.type}, {y.type}) outs({init.name} : {init.type}) -> {init.type}"
    return p.append(text, array + init.array)


def contract(p: Program, x: Tensor, y: Tensor, equation: str, start: float = 0.0) -> Tensor:
    """A generic that sums products: `equation` as for `np.einsum`, the result's letters in any order."""
    left, right = equation.split("->")[0].split(",")
    written = equation.split("->")[1]
    letters = sorted(set(left + right), key=(left + right).index)
    array = np.einsum(equation, x.array, y.array) + start
    reads = [[letters.index(letter) for letter in term] for term in (left, right, written)]
    iterators = "".join("p" if letter in written else "r" for letter in letters)
    body = ""
    factors = []
    for number, operand in enumerate((x, y)):
        factors.append(f"%x{number}" if operand.element == "f32" else f"%w{number}")
        if operand.element != "f32":
            body += f"%w{number} = arith.extf %x{number} : {operand.element} to f32\n    "
    body += (
        f"%m = arith.mulf {factors[0]}, {factors[1]} : f32\n    %s = arith.addf %o, %m : f32\n    linalg.yield %s : f32"
    )
    init = p.fill(start, array.shape)
    return p.generic([(x, reads[0]), (y, reads[1])], reads[2], iterators, body, array, init=init.name)


def window_sum(p: Program, x: Tensor, axis: int, width: int) -> Tensor:
    """Sums of `width` neighbours: a read that no iteration space makes strided."""
    extent = x.shape[axis] - width + 1
    array = sum(np.take(x.array, range(i, i + extent), axis) for i in range(width))
    reads = [f"d{i} + d{x.rank}" if i == axis else i for i in range(x.rank)]
    init = p.fill(0.0, array.shape)
    window = p.line(f"tensor.empty() : {tensor_type([width])}")
    body = "%y = arith.addf %x0, %o : f32\n    linalg.yield %y : f32"
    shape = Tensor(window, np.zeros(width))
    order = list(range(x.rank))
    return p.generic([(x, reads), (shape, [x.rank])], order, "p" * x.rank + "r", body, array, init=init.name)
