"""Random chains of movement operators, each as a view and as the NumPy program that it stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from smartmem_mlir.index_maps import movement, movement_windows
from smartmem_mlir.index_maps.view import View

Array = np.ndarray
SIZES = (1, 3, 4, 5, 7, 13)
MAX_ELEMENTS = 6000


@dataclass(frozen=True)
class Step:
    """One operator: `view` reads its operand 0 from the chain and the others from `extra` shapes."""

    name: str
    view: View
    run: Callable[..., Array]

    @property
    def extra(self) -> tuple[tuple[int, ...], ...]:
        return self.view.operands[1:]


@st.composite
def shapes(draw: st.DrawFn, max_rank: int = 6) -> tuple[int, ...]:
    """Ranks 0 (rarely) to 6, mostly awkward sizes."""
    rank = draw(st.integers(1, max_rank)) if draw(st.integers(0, 39)) else 0
    shape: list[int] = []
    for _ in range(rank):
        room = MAX_ELEMENTS // max(1, prod(shape))
        shape.append(draw(st.sampled_from([n for n in (*SIZES, 2, 6, 8) if n <= room])))
    return tuple(shape)


@st.composite
def factorisations(draw: st.DrawFn, volume: int) -> tuple[int, ...]:
    """A shape of this volume, with the prime factors grouped at random and a few ones in between."""
    primes = []
    rest, p = volume, 2
    while rest > 1:
        while rest % p == 0:
            primes.append(p)
            rest //= p
        p += 1
    shape: list[int] = []
    for prime in draw(st.permutations(primes)):
        if shape and (len(shape) >= 6 or draw(st.booleans())):
            shape[draw(st.integers(0, len(shape) - 1))] *= prime
        else:
            shape.append(prime)
    if len(shape) < 6 and draw(st.integers(0, 5)) == 0:
        shape.insert(draw(st.integers(0, len(shape))), 1)
    return tuple(shape)


def _transpose(draw: st.DrawFn, shape: tuple[int, ...]) -> Step:
    axes = draw(st.permutations(range(len(shape))))
    return Step(f"transpose {axes}", movement.transpose(shape, axes), lambda x: x.transpose(axes))


def _reshape(draw: st.DrawFn, shape: tuple[int, ...]) -> Step:
    new = draw(factorisations(prod(shape))) if prod(shape) else (*shape, 1)
    return Step(f"reshape {new}", movement.reshape(shape, new), lambda x: x.reshape(new))


def _collapse(draw: st.DrawFn, shape: tuple[int, ...]) -> Step | None:
    if len(shape) < 2:
        return None
    at = draw(st.integers(0, len(shape) - 2))
    new = (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :])
    return Step(f"collapse {at}", movement.reshape(shape, new), lambda x: x.reshape(new))


def _expand(draw: st.DrawFn, shape: tuple[int, ...]) -> Step | None:
    splits = [(i, k) for i, n in enumerate(shape) for k in range(2, n) if n % k == 0]
    if not splits or len(shape) > 5:
        return None
    at, k = draw(st.sampled_from(splits))
    new = (*shape[:at], shape[at] // k, k, *shape[at + 1 :])
    return Step(f"expand {at} by {k}", movement.reshape(shape, new), lambda x: x.reshape(new))


def _unsqueeze(draw: st.DrawFn, shape: tuple[int, ...]) -> Step | None:
    if len(shape) > 5:
        return None
    axis = draw(st.integers(0, len(shape)))
    return Step(f"unsqueeze {axis}", movement.expand_dims(shape, [axis]), lambda x: np.expand_dims(x, axis))


def _squeeze(draw: st.DrawFn, shape: tuple[int, ...]) -> Step | None:
    ones = [axis for axis, n in enumerate(shape) if n == 1]
    if not ones:
        return None
    axis = draw(st.sampled_from(ones))
    return Step(f"squeeze {axis}", movement.squeeze(shape, [axis]), lambda x: np.squeeze(x, axis))


def _slice(draw: st.DrawFn, shape: tuple[int, ...]) -> Step:
    starts, sizes, steps = [], [], []
    for n in shape:
        step = draw(st.sampled_from([1, 1, 1, 2, 3, -1, -2]))
        start = draw(st.integers(0, max(0, n - 1)))
        room = (n - start + step - 1) // step if step > 0 else start // -step + 1
        size = 0 if n == 0 else draw(st.integers(min(1, room), room))
        starts.append(start)
        sizes.append(size)
        steps.append(step)
    positions = [s + k * np.arange(n) for s, n, k in zip(starts, sizes, steps, strict=True)]

    def run(x: Array) -> Array:
        return x[np.ix_(*positions)] if positions else x

    return Step(f"slice {starts} {sizes} {steps}", movement.slice_(shape, starts, sizes, steps), run)


def _axis_op(name: str) -> Callable[[st.DrawFn, tuple[int, ...]], Step | None]:
    def make(draw: st.DrawFn, shape: tuple[int, ...]) -> Step | None:
        if not shape:
            return None
        axis = draw(st.integers(-len(shape), len(shape) - 1))
        n = shape[axis]
        grows = prod(shape) * 3 <= MAX_ELEMENTS
        if name == "roll":
            shift = draw(st.integers(-2 * n - 1, 2 * n + 1))
            return Step(
                f"roll {shift} {axis}", movement.roll(shape, [shift], [axis]), lambda x: np.roll(x, shift, axis)
            )
        if name == "flip":
            return Step(f"flip {axis}", movement.flip(shape, [axis]), lambda x: np.flip(x, axis))
        if name == "repeat" and grows:
            times = draw(st.integers(1, 3))
            return Step(f"repeat {times} {axis}", movement.repeat(shape, times, axis), lambda x: x.repeat(times, axis))
        if name == "gather":
            indices = draw(_index_tables(n)) if n else np.zeros(0, np.int64)
            if prod(shape) // max(1, n) * indices.size > MAX_ELEMENTS or len(shape) + indices.ndim > 7:
                return None
            view = movement.gather(shape, indices, axis, max_pieces=64)
            return Step(f"gather {indices.tolist()} {axis}", view, lambda x: np.take(x, indices, axis))
        if name == "concat" and grows:
            other = tuple(draw(st.integers(1, 3)) if i == axis % len(shape) else m for i, m in enumerate(shape))
            order = draw(st.booleans())
            view = movement.concat([shape, other], axis)
            if order:
                view, run = movement.concat([other, shape], axis), lambda x, y: np.concatenate([y, x], axis)
                view = _swapped(view)
            else:
                run = lambda x, y: np.concatenate([x, y], axis)  # noqa: E731
            return Step(f"concat {other} {axis} {order}", view, run)
        if name == "split" and n > 1:
            sizes = [draw(st.integers(1, n - 1))]
            sizes.append(n - sizes[0])
            part = draw(st.integers(0, 1))
            views = movement.split(shape, sizes, axis)
            return Step(f"split {sizes} {axis}", views[part], lambda x: np.split(x, [sizes[0]], axis)[part])
        return None

    return make


def _swapped(view: View) -> View:
    """Operands 0 and 1 exchanged, so that the chain stays operand 0."""
    from dataclasses import replace

    pieces = [replace(p, source=1 - p.source) if isinstance(p.source, int) else p for p in view.pieces]
    return View.of(view.shape, [view.operands[1], view.operands[0]], pieces)


@st.composite
def _index_tables(draw: st.DrawFn, n: int) -> Array:
    kind = draw(st.sampled_from(["any", "arange", "grid", "negative"]))
    if kind == "any":
        return np.array(draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=6)))
    if kind == "negative":
        return np.array(draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=4)))
    if kind == "arange":
        return np.arange(n)[:: draw(st.sampled_from([1, 2, -1, -3]))]
    k = draw(st.sampled_from([k for k in range(1, n + 1) if n % k == 0]))
    return np.arange(n).reshape(k, n // k).T


def _pad(draw: st.DrawFn, shape: tuple[int, ...]) -> Step | None:
    if not shape:
        return None
    mode = draw(st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap"]))
    low, high = [0] * len(shape), [0] * len(shape)
    for axis in draw(st.sets(st.integers(0, len(shape) - 1), max_size=2)):
        reach = 3 if mode == "constant" else min(shape[axis] + 2, 4)
        low[axis], high[axis] = draw(st.integers(0, reach)), draw(st.integers(0, reach))
    if mode == "constant" and draw(st.booleans()):
        axis = draw(st.integers(0, len(shape) - 1))
        low[axis] = -draw(st.integers(0, shape[axis] // 2))
    if 0 in shape and mode != "constant":
        return None
    grown = [a + n + b for a, n, b in zip(low, shape, high, strict=True)]
    if prod(grown) > MAX_ELEMENTS:
        return None
    crop = tuple(slice(max(0, -a), None) for a in low)
    width = [(max(0, a), b) for a, b in zip(low, high, strict=True)]
    options: dict[str, Any] = {"constant_values": -7} if mode == "constant" else {}
    view = movement_windows.pad(shape, low, high, mode, -7)
    return Step(f"pad {mode} {low} {high}", view, lambda x: np.pad(x[crop], width, mode, **options))


def _broadcast(draw: st.DrawFn, shape: tuple[int, ...]) -> Step | None:
    new = [draw(st.sampled_from([1, 3, 4])) if n == 1 else n for n in shape]
    if len(new) < 6 and draw(st.booleans()):
        new.insert(0, draw(st.sampled_from([1, 2, 5])))
    if prod(new) > MAX_ELEMENTS:
        return None
    return Step(f"broadcast {new}", movement.broadcast(shape, new), lambda x: np.broadcast_to(x, new))


def _tile(draw: st.DrawFn, shape: tuple[int, ...]) -> Step | None:
    times = [draw(st.sampled_from([1, 1, 1, 2, 3])) for _ in shape]
    if prod(shape) * prod(times) > MAX_ELEMENTS:
        return None
    return Step(f"tile {times}", movement.tile(shape, times), lambda x: np.tile(x, times) if times else x)


def _blocks(draw: st.DrawFn, shape: tuple[int, ...]) -> Step | None:
    if len(shape) != 4:
        return None
    n, c, h, w = shape
    mode = draw(st.sampled_from(["DCR", "CRD"]))
    r = draw(st.sampled_from([2, 3]))
    if c and c % (r * r) == 0:
        view = movement_windows.depth_to_space(shape, r, mode)
        depth = c // r // r
        parts = (n, r, r, depth, h, w) if mode == "DCR" else (n, depth, r, r, h, w)
        axes = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    elif h and w and h % r == 0 and w % r == 0:
        view = movement_windows.space_to_depth(shape, r, mode)
        parts = (n, c, h // r, r, w // r, r)
        axes = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    else:
        return None
    return Step(f"blocks {r} {mode}", view, lambda x: x.reshape(parts).transpose(axes).reshape(view.shape))


_MAKERS: tuple[Callable[[st.DrawFn, tuple[int, ...]], Step | None], ...] = (
    _transpose,
    _transpose,
    _reshape,
    _reshape,
    _collapse,
    _expand,
    _unsqueeze,
    _squeeze,
    _slice,
    _pad,
    _broadcast,
    _tile,
    _blocks,
    *(_axis_op(name) for name in ("roll", "flip", "repeat", "gather", "concat", "split")),
)


_BIJECTIONS = (_transpose, _reshape, _collapse, _expand, _unsqueeze, _axis_op("roll"), _axis_op("flip"))


@st.composite
def steps(draw: st.DrawFn, shape: tuple[int, ...], bijective: bool = False) -> Step:
    """One applicable operator on a tensor of this shape."""
    step = draw(st.sampled_from(_BIJECTIONS if bijective else _MAKERS))(draw, shape)
    return step if step is not None else _transpose(draw, shape)


@st.composite
def chains(draw: st.DrawFn, max_length: int = 8, bijective: bool = False) -> list[Step]:
    """A shape and up to `max_length` operators, each on the result of the one before."""
    shape = draw(shapes())
    chain = []
    for _ in range(draw(st.integers(1, max_length))):
        step = draw(steps(shape, bijective))
        chain.append(step)
        shape = step.view.shape
    return chain


def inputs_of(chain: Sequence[Step]) -> list[Array]:
    """Arrays of distinct values: the chain's input, then the further operands in the order of composition."""
    arrays: list[Array] = []
    start = 0
    # compose() puts the operands of the inner view first, so later steps' extra operands come after.
    for shape in [chain[0].view.operands[0], *(extra for step in chain for extra in step.extra)]:
        arrays.append(np.arange(start, start + prod(shape)).reshape(shape))
        start += prod(shape)
    return arrays


def execute(chain: Sequence[Step], arrays: Sequence[Array]) -> Array:
    """Runs the chain with NumPy."""
    value, rest = arrays[0], list(arrays[1:])
    for step in chain:
        value = step.run(value, *[rest.pop(0) for _ in step.extra])
    return value
