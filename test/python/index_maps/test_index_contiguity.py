"""Strides, run lengths, vector widths and evaluation cost against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from chains import Step, chains
from hypothesis import given, settings
from test_index_compose import composed, leading

from smartmem_mlir.index_maps import IndexMap, compose, const, dim, dims, evaluate, movement, movement_windows
from smartmem_mlir.index_maps.contiguity import (
    Run,
    address,
    contiguous_elements,
    fastest_axis,
    row_major_strides,
    run_along,
    vector_width,
)
from smartmem_mlir.index_maps.cost import Operations, Weights, map_cost, operations, view_cost


def addresses(index_map: IndexMap, strides: tuple[int, ...]) -> np.ndarray:
    values = np.zeros(index_map.domain.extents, np.int64)
    for value, stride in zip(evaluate(index_map), strides, strict=True):
        values = values + value * stride
    return values


def linear_in_blocks(values: np.ndarray, axis: int, length: int, stride: int) -> bool:
    """Whether addresses advance by `stride` inside every block of `length` along `axis`."""
    steps = np.diff(values, axis=axis)
    inside = (np.arange(1, values.shape[axis]) % length) != 0
    return bool(np.all(np.compress(inside, steps, axis=axis) == stride))


@settings(max_examples=120, deadline=None)
@given(chains(4))
def test_runs_are_what_memory_shows(chain: list[Step]) -> None:
    view = composed(chain)
    if view is None:
        return
    for piece in view.pieces[:4]:
        if not isinstance(piece.source, int):
            continue
        strides = row_major_strides(view.operands[piece.source])
        values = addresses(piece.map, strides)
        np.testing.assert_array_equal(evaluate(IndexMap(piece.box, (address(piece.map, strides),)))[0], values)
        for axis in range(piece.box.rank):
            run = run_along(piece.map, strides, axis)
            assert linear_in_blocks(values, axis, run.length, run.stride)
            starts = np.take(values, np.arange(0, values.shape[axis], run.length), axis=axis)
            assert run.multiple == 0 or not np.any(starts % run.multiple)
        count = contiguous_elements(piece.map, strides)
        rows = values.reshape(-1, count)
        assert np.all(np.diff(rows, axis=1) == 1)


@settings(max_examples=150, deadline=None)
@given(chains(3, bijective=True))
def test_no_longer_run_was_missed(chain: list[Step]) -> None:
    """Over splits, merges and flips the answer is the longest length that divides the extent and holds."""
    if any(step.name.startswith("roll") for step in chain):
        return
    view = composed(chain)
    if view is None or view.single_map is None or len([s for s in chain if s.name.startswith("reshape")]) > 1:
        return
    strides = row_major_strides(view.operands[0])
    values = addresses(view.single_map, strides)
    for axis, extent in enumerate(view.shape):
        run = run_along(view.single_map, strides, axis)
        longer = [k for k in range(run.length + 1, extent + 1) if extent % k == 0]
        if longer:
            stride = int(np.diff(values, axis=axis).reshape(-1)[0])
            assert not any(linear_in_blocks(values, axis, length, stride) for length in longer)


def test_swin_window_partition() -> None:
    view = movement_windows.window_partition((1, 56, 56, 96), (7, 7))
    strides = row_major_strides((1, 56, 56, 96))
    assert view.single_map is not None
    assert run_along(view.single_map, strides, 1) == Run(1, 96, 7, 1)
    assert run_along(view.single_map, strides, 2) == Run(2, 1, 96, 96)
    assert contiguous_elements(view.single_map, strides) == 7 * 96
    assert fastest_axis(view.single_map, strides) == Run(2, 1, 96, 96)
    assert vector_width(view.single_map, strides, 2, aligned=True) == 16
    assert vector_width(view.single_map, strides, 1) == 1


def test_a_shifted_window_keeps_channels_contiguous() -> None:
    shape = (1, 56, 56, 96)
    shifted = movement.roll(shape, (-3, -3), (1, 2))
    view = compose(movement_windows.window_partition(shape, (7, 7)), shifted)
    assert view.single_map is not None
    assert contiguous_elements(view.single_map, row_major_strides(shape)) == 96


def test_transposed_keys_are_fast_along_another_axis() -> None:
    """K^T read as [heads, d, n] from [n, heads * d]."""
    opened = movement.reshape((49, 96), (49, 3, 32))
    view = compose(movement.transpose((49, 3, 32), (1, 2, 0)), opened)
    assert view.single_map is not None
    assert fastest_axis(view.single_map, (96, 1)) == Run(1, 1, 32, 32)
    assert contiguous_elements(view.single_map, (96, 1)) == 1


def test_special_walks() -> None:
    assert run_along(IndexMap.of((8,), (7 - dim(0),)), (1,), 0) == Run(0, -1, 8, 7)
    assert run_along(IndexMap.of((8,), (dim(0) * 2,)), (1,), 0) == Run(0, 2, 8, 0)
    assert run_along(IndexMap.of((8, 4), (dim(0),)), (1,), 1) == Run(1, 0, 4, 1)
    assert run_along(IndexMap.of((8,), ((dim(0) + 3) % 8,)), (1,), 0).length == 1
    assert run_along(IndexMap.of((24,), (dim(0) % 6,)), (1,), 0) == Run(0, 1, 6, 0)
    assert contiguous_elements(IndexMap.identity((4, 5, 6)), (30, 6, 1)) == 120
    assert contiguous_elements(IndexMap.of((1, 1), (const(0),)), (1,)) == 1
    # Pairs are contiguous along the last axis, but the last one of each row has only one element.
    assert run_along(IndexMap.of((4, 3), (dim(0) * 9 + dim(1) + dim(1) // 2,)), (1,), 1).length == 2
    assert contiguous_elements(IndexMap.of((4, 3), (dim(0) * 9 + dim(1) + dim(1) // 2,)), (1,)) == 1
    assert fastest_axis(IndexMap.of((4,), (const(0),)), (1,)) is None


def test_alignment_of_vector_loads() -> None:
    odd = IndexMap.of((5, 32), (dim(0), dim(1) + 4))
    assert vector_width(odd, (36, 1), 1) == 16
    assert vector_width(odd, (36, 1), 1, aligned=True) == 4
    assert vector_width(IndexMap.of((5, 49), dims(2)), (49, 1), 1) == 1
    assert vector_width(IndexMap.of((5, 50), dims(2)), (50, 1), 1) == 2


@pytest.mark.parametrize(
    ("exprs", "expected"),
    [
        ((dim(0), dim(1)), Operations()),
        ((dim(0) // 8, dim(0) % 8), Operations(shift=1, mask=1)),
        ((dim(0) // 7, dim(0) % 7), Operations(div=1, mul=1, add=1)),
        ((dim(0) % 7,), Operations(mod=1)),
        ((dim(0) * 7 + dim(1) * 8 - 1,), Operations(mul=1, shift=1, add=2)),
        ((dim(0) // 25, dim(0) // 5 % 5, dim(0) % 5), Operations(div=2, mul=2, add=2)),
        ((7 - dim(0),), Operations(add=1)),
        (((dim(0) + 3) % 56, (dim(0) + 3) % 56), Operations(add=1, mod=1)),
    ],
)
def test_operations(exprs: tuple, expected: Operations) -> None:
    assert operations(exprs) == expected


def test_costs_weigh_pieces_by_their_size() -> None:
    view = movement.concat([(6, 4), (2, 4)], 0)
    assert view_cost(view, Weights(piece=0)) == pytest.approx(0.25)
    assert view_cost(view, Weights(piece=10)) == pytest.approx(10.25)
    assert view_cost(movement.slice_((4,), (0,), (0,))) == 0
    assert map_cost(IndexMap.of((8,), (dim(0) % 7 * 3,))) == 7


@pytest.mark.parametrize("kind", ["collapse", "expand"])
def test_folding_splits_or_merges_never_costs_more_than_the_parts(kind: str) -> None:
    names = {"transpose", "unsqueeze", kind}

    @settings(max_examples=100, deadline=None)
    @given(chains(5, bijective=True).map(lambda chain: leading(chain, names)).filter(bool))
    def check(chain: list[Step]) -> None:
        view = composed(chain)
        assert view is not None
        assert view.single_map is not None
        assert map_cost(view.single_map) <= sum(map_cost(s.view.single_map) for s in chain if s.view.single_map)

    check()
