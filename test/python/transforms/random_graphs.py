"""Random programs: movement in every spelling mixed with elementwise operators, reductions, norms and contractions."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import arithmetic as math_
import numpy as np
from hypothesis import strategies as st
from program import Program, Tensor

SIZES = (1, 3, 4, 5, 7)
MAX_ELEMENTS = 1500
MAX_RANK = 6

Operator = Callable[[st.DrawFn, Program, Tensor, list[Tensor]], Tensor | None]


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, ...]:
    """Ranks 1 to 6, awkward sizes, and now and then one that splits."""
    shape: list[int] = []
    for _ in range(draw(st.integers(1, MAX_RANK))):
        room = MAX_ELEMENTS // 2 // prod(shape)
        shape.append(draw(st.sampled_from([n for n in (*SIZES, *SIZES, 2, 6, 8) if n <= max(1, room)])))
    return tuple(shape)


def axis_of(draw: st.DrawFn, x: Tensor, least: int = 1) -> int | None:
    axes = [axis for axis, n in enumerate(x.shape) if n >= least]
    return draw(st.sampled_from(axes)) if axes else None


def fits(x: Tensor, times: int = 2) -> bool:
    return x.array.size * times <= MAX_ELEMENTS


# Movement


def transpose(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor:
    spelling = draw(st.sampled_from(["transpose", "transpose", "input", "output"]))
    return p.transpose(x, draw(st.permutations(range(x.rank))), spelling)


def expand(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor | None:
    parts = []
    for n in x.shape:
        room = MAX_RANK - x.rank - sum(len(part) - 1 for part in parts)
        splits = [(n,), (n,)] + ([(k, n // k) for k in range(1, n + 1) if n % k == 0] if room > 0 else [])
        parts.append(draw(st.sampled_from(splits)))
    return p.expand(x, parts) if any(len(part) > 1 for part in parts) else None


def collapse(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor | None:
    if x.rank < 2:
        return None
    groups = [[0]]
    for axis in range(1, x.rank):
        if draw(st.booleans()):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return p.collapse(x, groups) if len(groups) < x.rank else None


def reshape(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor:
    rest, shape = x.array.size, []
    while rest > 1 and len(shape) < MAX_RANK - 1:
        part = draw(st.sampled_from([n for n in range(2, rest + 1) if rest % n == 0]))
        shape.append(part)
        rest //= part
    return p.reshape(x, [*shape, rest] if rest > 1 or not shape else shape)


def slice_(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor:
    offsets, sizes, strides = [], [], []
    for n in x.shape:
        offset, stride = draw(st.integers(0, n - 1)), draw(st.sampled_from([1, 1, 2, 3]))
        room = (n - 1 - offset) // stride + 1
        whole = draw(st.booleans())
        offsets.append(0 if whole else offset)
        sizes.append(n if whole else draw(st.integers(1, room)))
        strides.append(1 if whole else stride)
    drop = any(n == 1 for n in sizes) and any(n > 1 for n in sizes) and draw(st.booleans())
    return p.slice(x, offsets, sizes, strides, drop)


def insert(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor | None:
    grown = [n + draw(st.integers(0, 2)) for n in x.shape]
    if prod(grown) > MAX_ELEMENTS:
        return None
    offsets = [draw(st.integers(0, big - n)) for big, n in zip(grown, x.shape, strict=True)]
    into = p.fill(0.5, grown, x.element) if draw(st.booleans()) else p.argument(grown, x.element)
    return p.insert(x, into, offsets, [1] * x.rank)


def concat(draw: st.DrawFn, p: Program, x: Tensor, values: list[Tensor]) -> Tensor | None:
    if not fits(x, 3):
        return None
    axis = draw(st.integers(0, x.rank - 1))
    others = [y for y in values if same_but(x, y, axis) and y.shape[axis] <= 2 * x.shape[axis]]
    parts = [draw(st.sampled_from(others)) for _ in range(draw(st.integers(1, 2)))]
    return p.concat(draw(st.permutations([x, *parts])), axis)


def same_but(x: Tensor, y: Tensor, axis: int) -> bool:
    return (
        y.rank == x.rank
        and y.element == x.element
        and all(a == b for i, (a, b) in enumerate(zip(x.shape, y.shape, strict=True)) if i != axis)
    )


def pad(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor | None:
    low = [draw(st.sampled_from([0, 0, 1, 2])) for _ in x.shape]
    high = [draw(st.sampled_from([0, 0, 1, 3])) for _ in x.shape]
    if prod(a + n + b for a, n, b in zip(low, x.shape, high, strict=True)) > MAX_ELEMENTS:
        return None
    return p.pad(x, low, high, draw(st.sampled_from([0.0, -0.5])))


def broadcast(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor | None:
    if x.rank >= MAX_RANK or not fits(x, 4):
        return None
    axis, n = draw(st.integers(0, x.rank)), draw(st.sampled_from([1, 3, 4]))
    shape = [*x.shape[:axis], n, *x.shape[axis:]]
    return p.broadcast(x, shape, [axis], draw(st.sampled_from(["broadcast", "generic"])))


def repeat_ones(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor | None:
    if 1 not in x.shape or not fits(x, 4):
        return None
    axis = draw(st.sampled_from([i for i, n in enumerate(x.shape) if n == 1]))
    shape = [draw(st.sampled_from([3, 4])) if i == axis else n for i, n in enumerate(x.shape)]
    return p.broadcast(x, shape, [], "generic")


def roll(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor | None:
    axis = axis_of(draw, x, 2)
    return None if axis is None else p.roll(x, draw(st.integers(1, x.shape[axis] - 1)), axis)


def flip(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor:
    return p.flip(x, draw(st.integers(0, x.rank - 1)))


def gather(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor:
    """At one constant position, at several, or at positions that are only known at run time."""
    axis = draw(st.integers(0, x.rank - 1))
    n = x.shape[axis]
    kind = draw(st.sampled_from(["one", "some", "argument"]))
    if kind == "argument":
        return p.gather(x, p.argument([n], "i64", n), axis)
    count = 1 if kind == "one" else draw(st.integers(1, n))
    return p.gather(x, p.positions([draw(st.integers(-n, n - 1)) for _ in range(count)]), axis)


def windows(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor | None:
    """Window partition over two axes: expand, transpose, collapse."""
    if not 2 <= x.rank <= 4:
        return None
    axis = draw(st.integers(0, x.rank - 2))
    factors = [[k for k in range(1, x.shape[a] + 1) if x.shape[a] % k == 0] for a in (axis, axis + 1)]
    a, b = (draw(st.sampled_from(f)) for f in factors)
    parts = [[n] for n in x.shape]
    parts[axis], parts[axis + 1] = [x.shape[axis] // a, a], [x.shape[axis + 1] // b, b]
    order = list(range(x.rank + 2))
    order[axis + 1], order[axis + 2] = order[axis + 2], order[axis + 1]
    split = p.transpose(p.expand(x, parts), order)
    groups = [[i] for i in range(axis)] + [[axis, axis + 1], [axis + 2, axis + 3]]
    return p.collapse(split, groups + [[i] for i in range(axis + 4, x.rank + 2)])


# Arithmetic


def unary(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor:
    return math_.unary(p, x, draw(st.sampled_from(["math.tanh", "arith.negf", "math.absf"])))


def binary(draw: st.DrawFn, p: Program, x: Tensor, values: list[Tensor]) -> Tensor:
    y = draw(st.sampled_from([y for y in values if y.shape == x.shape and y.element == x.element]))
    return math_.binary(p, x, y, draw(st.sampled_from(["addf", "subf", "mulf", "maximumf"])))


def binary_row(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor:
    """With a tensor of fewer axes, in any order, some of extent 1."""
    axes = draw(st.permutations(draw(st.lists(st.integers(0, x.rank - 1), unique=True, max_size=3))))
    y = p.argument([draw(st.sampled_from([1, x.shape[axis]])) for axis in axes], x.element)
    return math_.binary(p, x, y, draw(st.sampled_from(["addf", "mulf"])), axes)


def scale(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor:
    return math_.scale(p, x, 0.5, draw(st.sampled_from(["captured", "operand"])))


def reduce(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor | None:
    if x.element != "f32":
        return None
    axes = draw(st.lists(st.integers(0, x.rank - 1), min_size=1, max_size=2, unique=True))
    keep = draw(st.booleans())
    if not keep and len(axes) == x.rank:
        return None
    return math_.scale(p, math_.reduce(p, x, sorted(axes), draw(st.sampled_from(["addf", "maximumf"])), keep), 0.25)


def normalise(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor | None:
    if x.element != "f32" or x.rank < 2:
        return None
    axis, keep = draw(st.integers(0, x.rank - 1)), draw(st.booleans())
    return math_.softmax(p, x, axis, keep) if draw(st.booleans()) else math_.layer_norm(p, x, [axis], keep)


def linear(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor | None:
    """Over the last axis, as a matrix product of collapsed rows or as a generic on any order of the result's axes."""
    n = draw(st.sampled_from(SIZES))
    k = x.shape[-1]
    if x.array.size // k * n > MAX_ELEMENTS:
        return None
    if x.element == "f32" and draw(st.booleans()):
        rows = x if x.rank == 2 else p.reshape(x, [x.array.size // k, k])
        weight = p.argument([k, n]) if draw(st.booleans()) else p.transpose(p.argument([n, k]), [1, 0])
        start = draw(st.sampled_from([0.0, 0.0, 0.75]))
        init = p.argument([rows.shape[0], n]) if draw(st.integers(0, 5)) == 0 else start
        product = math_.matmul(p, rows, weight, init)
        return product if x.rank == 2 else p.reshape(product, [*x.shape[:-1], n])
    rows = "abcdefg"[: x.rank - 1]
    weight, term = (p.argument([k, n], x.element), "kn") if draw(st.booleans()) else (p.argument([n, k]), "nk")
    written = "".join(draw(st.permutations([*rows, "n"])))
    return math_.contract(p, x, weight, f"{rows}k,{term}->{written}", draw(st.sampled_from([0.0, 0.0, 0.5])))


def attend(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor | None:
    """Scores and weighted sums of heads, with the scale, the transposes and the softmax where models have them."""
    if x.element != "f32" or x.rank != 2 or x.shape[1] % 2 or x.array.size > 64:
        return None
    n, width = x.shape
    heads = p.transpose(p.expand(x, [[n], [2, width // 2]]), [1, 0, 2])
    queries = math_.scale(p, heads, 0.5, draw(st.sampled_from(["captured", "operand"])))
    if draw(st.booleans()):
        scores = math_.matmul(p, queries, p.transpose(heads, [0, 2, 1]))
    else:
        scores = math_.contract(p, queries, heads, "hnk,hmk->hnm")
    weights = math_.softmax(p, scores, 2, draw(st.booleans()))
    mixed = math_.matmul(p, weights, heads)
    return p.collapse(p.transpose(mixed, [1, 0, 2]), [[0], [1, 2]])


def width_cast(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor:
    return math_.cast(p, x, "f16" if x.element == "f32" else "f32")


def window_sum(draw: st.DrawFn, p: Program, x: Tensor, _: list[Tensor]) -> Tensor | None:
    axis = axis_of(draw, x, 3)
    return None if axis is None or x.element != "f32" else math_.window_sum(p, x, axis, 2)


MOVEMENT: tuple[Operator, ...] = (
    *(transpose, transpose, expand, collapse, reshape, slice_, insert, concat, pad, broadcast),
    *(repeat_ones, roll, roll, flip, gather, windows),
)
ARITHMETIC: tuple[Operator, ...] = (
    *(unary, binary, binary, binary_row, scale, reduce, normalise, linear, linear, attend, width_cast, window_sum),
)


@st.composite
def programs(draw: st.DrawFn, name: str = "main", max_operators: int = 12) -> Program:
    """A program of up to `max_operators` operators; any value may be used again, several are returned."""
    p = Program(name)
    values = [p.argument(draw(shapes())) for _ in range(draw(st.integers(1, 2)))]
    used: set[str] = set()
    for _ in range(draw(st.integers(1, max_operators))):
        # Mostly on from the last value, so that chains form.
        x = values[-1] if draw(st.integers(0, 3)) else draw(st.sampled_from(values))
        operator = draw(st.sampled_from(MOVEMENT if draw(st.integers(0, 2)) else ARITHMETIC))
        made = operator(draw, p, x, values)
        if made is None or not made.rank:
            continue
        used.add(x.name)
        values.append(made)
    leaves = [value for value in values if value.name not in used]
    p.results = [*leaves, draw(st.sampled_from(values))]
    assert all(np.all(np.isfinite(result.array)) for result in p.results)
    return p
