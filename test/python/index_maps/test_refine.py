"""Splitting iteration spaces and reading tensors by digits, against the values of the original access."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smartmem_mlir.index_maps.expr import Expr, dim
from smartmem_mlir.index_maps.map import IndexMap, evaluate
from smartmem_mlir.index_maps.refine import Refinement, StridedAccess, factor, refine

D0, D1, D2 = dim(0), dim(1), dim(2)


def coordinates(extents: tuple[int, ...], access: tuple[Expr, ...]) -> list[np.ndarray]:
    return [np.asarray(values).ravel() for values in evaluate(IndexMap.of(extents, access))]


def read(tensor: np.ndarray, access: StridedAccess, extents: tuple[int, ...]) -> np.ndarray:
    """Executes the access the way IR would: expand, slice, index by dimensions."""
    expanded = tensor.reshape([digit.extent for digit in access.digits])
    for axis, digit in enumerate(access.digits):
        positions = digit.offset + digit.step * np.arange(digit.size)
        expanded = np.take(expanded, positions, axis=axis)
    point = np.indices(extents)
    return expanded[tuple(point[d.dim] if d.dim is not None else 0 for d in access.digits)]


def test_window_partition_becomes_a_permutation() -> None:
    window, token = D0, D1
    access = (window // 8 * 7 + token // 7, window % 8 * 7 + token % 7, D2)
    refinement = refine((64, 49, 96), [access])
    assert refinement == Refinement(((8, 8), (7, 7), (96,)))
    strided = factor((56, 56, 96), refinement.apply(access), refinement.extents)
    assert strided is not None
    assert strided.dims == (0, 2, 1, 3, 4)
    assert strided.is_bijection


def test_rotation_is_no_strided_access() -> None:
    assert refine((56,), [((D0 + 3) % 56,)]) is None


def test_divisors_that_do_not_nest_are_refused() -> None:
    assert refine((12,), [(D0 // 4, D0 % 6)]) is None


def test_common_split_of_two_operands() -> None:
    assert refine((64, 96), [(D0, D1 // 32, D1 % 32), (D1 // 8, D0)]) == Refinement(((64,), (3, 4, 8)))


def test_slice_of_a_fused_projection() -> None:
    """K of a fused QKV product: columns 96..191 of [3136, 288], heads of 32."""
    access = (D0 * 49 + D1, 96 + D2 * 32 + dim(3))
    strided = factor((3136, 288), access, (64, 49, 3, 32))
    assert strided is not None
    assert [(d.extent, d.dim, d.offset) for d in strided.axes[1]] == [(9, 2, 3), (32, 3, 0)]
    assert not strided.is_bijection


def test_sliding_window_and_reversal_are_refused() -> None:
    assert factor((8,), (D0 + D1,), (6, 3)) is None
    assert factor((8,), (7 - D0,), (8, 1)) is None


def test_stride_that_does_not_divide() -> None:
    strided = factor((7,), (D0 * 2,), (4,))
    assert strided is not None
    assert strided.axes[0][0].step == 2


@pytest.mark.parametrize("shape", [(1,), (1, 1)])
def test_unit_axes_are_constant(shape: tuple[int, ...]) -> None:
    strided = factor(shape, (Expr(0),) * len(shape), (5,))
    assert strided is not None
    assert strided.dims == ()


@st.composite
def movement(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[Expr, ...], tuple[int, ...]]:
    """A reshape of a permuted, sliced tensor: (iteration space, access, source shape)."""
    factors = draw(st.lists(st.sampled_from([1, 2, 3, 5, 7]), min_size=1, max_size=4))
    groups = draw(st.lists(st.integers(0, 1), min_size=len(factors), max_size=len(factors)))
    order = draw(st.permutations(range(len(factors))))
    # Result axes: runs of the permuted factors merged where `groups` says so.
    axes: list[list[int]] = []
    for position, f in enumerate(order):
        if position and groups[position]:
            axes[-1].append(f)
        else:
            axes.append([f])
    extents = tuple(int(np.prod([factors[f] for f in axis])) for axis in axes)
    coordinate: dict[int, Expr] = {}
    for i, axis in enumerate(axes):
        below = extents[i]
        for f in axis:
            below //= factors[f]
            coordinate[f] = dim(i) // below % factors[f]
    pad = draw(st.lists(st.integers(0, 2), min_size=len(factors), max_size=len(factors)))
    access = tuple(coordinate[f] + pad[f] for f in range(len(factors)))
    return extents, access, tuple(n + 2 * p for n, p in zip(factors, pad, strict=True))


@given(movement())
@settings(max_examples=150, deadline=None)
def test_refined_and_factored_reads_equal_the_original(
    case: tuple[tuple[int, ...], tuple[Expr, ...], tuple[int, ...]],
) -> None:
    extents, access, shape = case
    tensor = np.arange(np.prod(shape)).reshape(shape)
    expected = tensor[tuple(coordinates(extents, access))]
    refinement = refine(extents, [access])
    assert refinement is not None
    refined = refinement.apply(access)
    strided = factor(shape, refined, refinement.extents)
    assert strided is not None
    np.testing.assert_array_equal(read(tensor, strided, refinement.extents).ravel(), expected)
