"""Each movement operator against NumPy (or its definition, where NumPy has none)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import pytest
from chains import execute, inputs_of, shapes, steps
from hypothesis import given, settings
from hypothesis import strategies as st

from smartmem_mlir.index_maps import (
    Fill,
    IndexMapError,
    IndexOverflowError,
    PieceLimitExceeded,
    View,
    apply,
    movement,
    movement_windows,
)
from smartmem_mlir.index_maps.isl import prove_equal

Array = np.ndarray


def ramp(shape: tuple[int, ...]) -> Array:
    return np.arange(prod(shape)).reshape(shape)


def agrees(view: View, reference: Callable[[Array], Array], pieces: int | None = 1) -> None:
    """The view executes as `reference` does, is well formed, and has this many pieces."""
    view.check_cover()
    view.check_bounds()
    x = ramp(view.operands[0])
    expected = reference(x)
    assert view.shape == expected.shape
    np.testing.assert_array_equal(apply(view, [x]), expected)
    if pieces is not None:
        assert len(view.pieces) == pieces


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_random_operator(data: st.DataObject) -> None:
    step = data.draw(steps(data.draw(shapes())))
    step.view.check_cover()
    step.view.check_bounds()
    arrays = inputs_of([step])
    np.testing.assert_array_equal(apply(step.view, arrays), execute([step], arrays), err_msg=step.name)


def test_pad_modes() -> None:
    for mode, pieces in (("edge", 9), ("reflect", 9), ("symmetric", 9), ("wrap", 1)):
        view = movement_windows.pad((5, 7), (2, 3), (3, 1), mode)
        agrees(view, lambda x, mode=mode: np.pad(x, ((2, 3), (3, 1)), mode), pieces)
    agrees(
        movement_windows.pad((5, 7), (2, 3), (3, 1), "constant", 9),
        lambda x: np.pad(x, ((2, 3), (3, 1)), constant_values=9),
        5,
    )


@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_pad_reflects_again_and_again(mode: str, n: int) -> None:
    agrees(movement_windows.pad((n,), (7,), (8,), mode), lambda x: np.pad(x, (7, 8), mode), None)


def test_pad_crops_when_negative() -> None:
    agrees(
        movement_windows.pad((5, 7), (-2, 1), (0, -3), "constant", 0), lambda x: np.pad(x[2:, :4], ((0, 0), (1, 0))), 2
    )
    with pytest.raises(IndexMapError, match="cannot crop"):
        movement_windows.pad((5,), (-3,), (-3,))


def test_pad_of_an_empty_axis() -> None:
    agrees(movement_windows.pad((0, 2), (1, 0), (1, 0), "constant", 4), lambda x: np.full((2, 2), 4), 1)
    with pytest.raises(IndexMapError, match="empty axis"):
        movement_windows.pad((0, 2), (1, 0), (1, 0), "edge")


def test_pad_of_many_axes_is_refused_rather_than_slow() -> None:
    with pytest.raises(PieceLimitExceeded):
        movement_windows.pad((3,) * 6, (1,) * 6, (1,) * 6, "edge")


def test_interior_of_a_constant_pad_is_one_piece_whatever_the_rank() -> None:
    view = movement_windows.pad((3,) * 6, (1,) * 6, (1,) * 6, "constant", -1.0)
    assert len(view.pieces) == 13
    assert sum(not isinstance(piece.source, Fill) for piece in view.pieces) == 1


@pytest.mark.parametrize(("mode", "axes"), [("DCR", (0, 3, 4, 1, 5, 2)), ("CRD", (0, 1, 4, 2, 5, 3))])
def test_depth_to_space_with_odd_images(mode: str, axes: tuple[int, ...]) -> None:
    def reference(x: Array) -> Array:
        split = (2, 3, 3, 2, 5, 7) if mode == "DCR" else (2, 2, 3, 3, 5, 7)
        return x.reshape(split).transpose(axes).reshape(2, 2, 15, 21)

    view = movement_windows.depth_to_space((2, 18, 5, 7), 3, mode)
    agrees(view, reference)
    back = movement_windows.space_to_depth((2, 2, 15, 21), 3, mode)
    x = ramp((2, 18, 5, 7))
    np.testing.assert_array_equal(apply(back, [apply(view, [x])]), x)


def test_im2col_and_unfold() -> None:
    shape, kernel, strides, dilations, low, high = (2, 3, 9, 8), (3, 2), (2, 1), (1, 2), (1, 2), (0, 1)

    def reference(x: Array) -> Array:
        padded = np.pad(x, ((0, 0), (0, 0), (1, 0), (2, 1)))
        oh = (padded.shape[2] - 3) // 2 + 1
        ow = padded.shape[3] - 3 + 1
        out = np.zeros((2, 3, 3, 2, oh, ow), x.dtype)
        for kh in range(3):
            for kw in range(2):
                out[:, :, kh, kw] = padded[:, :, kh : kh + 2 * oh - 1 : 2, 2 * kw : 2 * kw + ow]
        return out

    view = movement_windows.im2col(shape, kernel, strides, dilations, low, high)
    agrees(view, reference, None)
    assert sum(not isinstance(piece.source, Fill) for piece in view.pieces) <= 16
    flat = movement_windows.unfold((2, 3, 6, 8), (3, 2))
    windows = np.lib.stride_tricks.sliding_window_view(ramp((2, 3, 6, 8)), (3, 2), axis=(2, 3))
    expected = windows.transpose(0, 1, 4, 5, 2, 3).reshape(2, 18, 28)
    agrees(flat, lambda _: expected)


def test_unfold_with_padding_of_many_channels_is_refused() -> None:
    with pytest.raises(PieceLimitExceeded):
        movement_windows.unfold((1, 64, 56, 56), (3, 3), padding=(1, 1))


def test_window_partition_and_reverse() -> None:
    def reference(x: Array) -> Array:
        return x.reshape(2, 2, 7, 3, 4, 5).transpose(0, 1, 3, 2, 4, 5).reshape(12, 28, 5)

    view = movement_windows.window_partition((2, 14, 12, 5), (7, 4))
    agrees(view, reference)
    x = ramp((2, 14, 12, 5))
    back = movement_windows.window_reverse((2, 14, 12, 5), (7, 4))
    np.testing.assert_array_equal(apply(back, [apply(view, [x])]), x)


def relative_position_index(window: int) -> Array:
    """Swin's table of offsets between the tokens of a window."""
    rows, columns = np.divmod(np.arange(window * window), window)
    return (rows[:, None] - rows + window - 1) * (2 * window - 1) + columns[:, None] - columns + window - 1


@pytest.mark.parametrize(
    ("indices", "pieces"),
    [
        (np.arange(13), 1),
        (np.arange(13)[::-2], 1),
        (np.array([5, 5, 5, 5]), 1),
        (np.array([3]), 1),
        (np.array([-1, -2, -3]), 1),
        (np.arange(12).reshape(3, 4).T.copy(), 1),
        (np.tile([0, 1, 2], 4), 1),
        (np.repeat([7, 4, 1], 3), 1),
        (np.array([0, 1, 2, 3, 9, 10, 11, 12]), 1),
        (np.array([0, 1, 2, 3, 9, 11]), 2),
        (np.array(4), 1),
        (np.zeros((2, 0), np.int64), 0),
    ],
)
def test_gather_with_constant_indices(indices: Array, pieces: int) -> None:
    agrees(movement.gather((4, 13, 2), indices, 1), lambda x: np.take(x, indices, 1), pieces)


def test_gather_of_relative_position_biases_is_one_piece() -> None:
    table = relative_position_index(7)
    view = movement.gather((169, 3), table, 0)
    agrees(view, lambda x: x[table])


def test_gather_without_structure_is_refused() -> None:
    indices = np.random.default_rng(0).permutation(100)
    with pytest.raises(PieceLimitExceeded, match="runs"):
        movement.gather((100,), indices, 0)


@pytest.mark.parametrize("indices", [[13], [-14], [0, 99]])
def test_gather_out_of_range_is_refused(indices: list[int]) -> None:
    with pytest.raises(IndexMapError, match="out of range"):
        movement.gather((4, 13), np.array(indices), 1)


def test_reshape_groups_are_as_small_as_possible() -> None:
    groups = movement.reshape_groups((4, 6, 5, 1, 7), (2, 2, 6, 35))
    assert groups == [(range(1), range(2)), (range(1, 2), range(2, 3)), (range(2, 5), range(3, 4))]
    assert movement.reshape_groups((), (1, 1)) == [(range(0), range(2))]
    assert movement.reshape_groups((1, 1), ()) == [(range(2), range(0))]
    assert movement.reshape_groups((), ()) == []


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_reshape_equals_the_linear_address(data: st.DataObject) -> None:
    from chains import factorisations

    from smartmem_mlir.index_maps import IndexMap, dims

    shape = data.draw(shapes())
    new = data.draw(factorisations(prod(shape)))
    raw = IndexMap.of(new, movement.delinearize(movement.linearize(dims(len(new)), new), shape))
    (piece,) = movement.reshape(shape, new).pieces
    assert prove_equal(piece.map, raw)


ZERO_SIZE = [
    lambda: movement.reshape((0, 4), (2, 0, 3)),
    lambda: movement.transpose((0, 4), (1, 0)),
    lambda: movement.roll((0, 4), (3,), (0,)),
    lambda: movement.flip((0, 4), (0,)),
    lambda: movement.tile((2, 3), (0, 2)),
    lambda: movement.tile((0, 3), (4, 2)),
    lambda: movement.repeat((2, 3), 0, 1),
    lambda: movement.slice_((2, 3), (1, 0), (0, 3)),
    lambda: movement.broadcast((1, 3), (0, 3)),
    lambda: movement.concat([(0, 2), (0, 2)], 0),
    lambda: movement_windows.window_partition((0, 8, 8, 3), (4, 4)),
    lambda: movement_windows.depth_to_space((1, 0, 3, 3), 2),
]


@pytest.mark.parametrize("make", ZERO_SIZE)
def test_zero_size_results(make: Callable[[], View]) -> None:
    view = make()
    assert view.pieces == ()
    assert apply(view, [np.zeros(shape) for shape in view.operands]).shape == view.shape
    assert prod(view.shape) == 0


def test_concat_skips_empty_operands() -> None:
    view = movement.concat([(0, 2), (3, 2), (0, 2)], 0)
    assert [piece.source for piece in view.pieces] == [1]


def test_rank_zero() -> None:
    agrees(movement.transpose((), ()), lambda x: x)
    agrees(movement.reshape((), (1, 1)), lambda x: x.reshape(1, 1))
    agrees(movement.reshape((1, 1), ()), lambda x: x.reshape(()))
    agrees(movement.broadcast((), (3, 2)), lambda x: np.broadcast_to(x, (3, 2)))


BAD = [
    (lambda: movement.transpose((2, 3), (0, 0)), "not a permutation"),
    (lambda: movement.transpose((2, 3), (0, 2)), "out of range"),
    (lambda: movement.reshape((2, 3), (4,)), "different numbers of elements"),
    (lambda: movement.slice_((5,), (3,), (3,)), "slice of 3 from 3"),
    (lambda: movement.slice_((5,), (1,), (3,), (-1,)), "slice of 3 from 1 by -1"),
    (lambda: movement.slice_((5,), (0,), (3,), (0,)), "by 0"),
    (lambda: movement.split((5,), (2, 2), 0), "parts"),
    (lambda: movement.concat([], 0), "no operands"),
    (lambda: movement.concat([(2, 3), (2, 4)], 0), "cannot concat"),
    (lambda: movement.broadcast((2, 3), (4, 3)), "cannot broadcast"),
    (lambda: movement.squeeze((2, 3), (0,)), "size 1"),
    (lambda: movement.expand_dims((2,), (0, 0)), "repeat"),
    (lambda: movement.tile((2, 3), (1,)), "repeats"),
    (lambda: movement.repeat((2,), -1, 0), "repeat"),
    (lambda: movement_windows.window_partition((1, 15, 14, 3), (7, 7)), "windows"),
    (lambda: movement_windows.depth_to_space((1, 7, 2, 2), 2), "multiple"),
    (lambda: movement_windows.space_to_depth((1, 7, 3, 2), 2), "multiple"),
    (lambda: movement_windows.depth_to_space((4, 2, 2), 2), "expected"),
    (lambda: movement_windows.im2col((1, 1, 2, 2), (3, 3)), "kernel"),
    (lambda: movement_windows.pad((2,), (1, 1), (0, 0)), "rank"),
    (lambda: movement_windows.pad((2,), (1,), (0,), "mirror"), "unknown"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_parameters_that_do_not_fit_are_refused(make: Callable[[], View], message: str) -> None:
    with pytest.raises(IndexMapError, match=message):
        make()


def test_shapes_beyond_int64_are_refused() -> None:
    with pytest.raises(IndexOverflowError):
        movement.reshape((2**32, 2**32), (2**31, 2**33))
    with pytest.raises(IndexOverflowError):
        movement.broadcast((2**32, 1), (2**32, 2**32))
    movement.transpose((2**31, 2**31), (1, 0))
