"""Simplification of whole expressions: the paper's example, real models' chains, and random expressions."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_index_expr import small_exprs

from smartmem_mlir.index_maps import IndexMap, View, compose, dim, dims, evaluate, invert, movement, movement_windows
from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.cost import map_cost
from smartmem_mlir.index_maps.expr import Expr
from smartmem_mlir.index_maps.isl import prove_equal, prove_views_equal
from smartmem_mlir.index_maps.simplify import Simplifier


def figure_3() -> View:
    """[2, 256, 4] reshaped to [16, 8, 4, 4], transposed to [16, 4, 8, 4]."""
    opened = movement.reshape((2, 256, 4), (16, 8, 4, 4))
    return compose(movement.transpose((16, 8, 4, 4), (0, 2, 1, 3)), opened)


def test_paper_figure_3_as_a_consumer_reads_it() -> None:
    i, j, k, m = dims(4)
    assert figure_3().pieces[0].exprs == (i // 8, i % 8 * 32 + k * 4 + j, m)
    assert str(figure_3().single_map) == ("(d0, d1, d2, d3) -> (d0 floordiv 8, (d0 mod 8) * 32 + d2 * 4 + d1, d3)")


def test_paper_figure_3_as_printed() -> None:
    """i' = i*8 + j//(4*8), j' = j % 4, k' = j % (4*8) // 4, l' = k."""
    i, j, k = dims(3)
    printed = IndexMap.of((2, 256, 4), (i * 8 + j // 32, j % 4, j % 32 // 4, k))
    push = invert(figure_3()).pieces[0].map
    assert push == printed.simplify()
    assert prove_equal(push, printed)


def test_paper_rule() -> None:
    assert Simplifier(Box.of([1000]))(dim(0) % 12 % 4) is dim(0) % 4


def through_linear_address(shape: tuple[int, ...], new: tuple[int, ...]) -> IndexMap:
    """A reshape as it looks before index comprehension."""
    linear = movement.linearize(dims(len(new)), new)
    return IndexMap.of(new, movement.delinearize(linear, shape))


@pytest.mark.parametrize(
    ("shape", "new", "expected"),
    [
        ((64, 49, 96), (64, 49, 96), "(d0, d1, d2) -> (d0, d1, d2)"),
        ((64, 49, 288), (64, 49, 3, 3, 32), "(d0, d1, d2, d3, d4) -> (d0, d1, d2 * 96 + d3 * 32 + d4)"),
        ((8, 8, 7, 7), (64, 49), "(d0, d1) -> (d0 floordiv 8, d0 mod 8, d1 floordiv 7, d1 mod 7)"),
        ((5, 5, 5), (5, 25), "(d0, d1) -> (d0, d1 floordiv 5, d1 mod 5)"),
        ((6, 4), (4, 6), "(d0, d1) -> (d0 + (d0 * 2 + d1) floordiv 4, (d0 * 2 + d1) mod 4)"),
    ],
)
def test_the_linear_address_disappears(shape: tuple[int, ...], new: tuple[int, ...], expected: str) -> None:
    raw = through_linear_address(shape, new)
    assert str(raw.simplify()) == expected
    assert str(movement.reshape(shape, new).single_map) == expected
    assert prove_equal(raw, raw.simplify())


def swin(height: int, window: int, shift: int) -> tuple[View, View]:
    """`(roll, partition)` composed, and `(reverse, roll back)` composed."""
    image = (1, height, height, 96)
    windows = movement_windows.window_partition(image, (window, window))
    there = compose(windows, movement.roll(image, (-shift, -shift), (1, 2)))
    back = compose(
        movement.roll(image, (shift, shift), (1, 2)), movement_windows.window_reverse(image, (window, window))
    )
    return there, back


@pytest.mark.parametrize(("height", "window", "shift"), [(56, 7, 3), (28, 7, 3), (14, 7, 3), (24, 12, 6), (15, 5, 2)])
def test_swin_shift_partition_reverse_unshift_is_the_identity(height: int, window: int, shift: int) -> None:
    there, back = swin(height, window, shift)
    for round_trip in (compose(back, there), compose(there, back)):
        assert len(round_trip.pieces) == 1
        assert round_trip.is_identity()
        assert prove_views_equal(round_trip, View.identity(round_trip.shape))


def test_swin_windows_are_one_piece_and_flat_over_split_axes() -> None:
    there, _ = swin(56, 7, 3)
    assert len(there.pieces) == 1
    apart = compose(movement.reshape(there.shape, (8, 8, 7, 7, 96)), there)
    assert str(apart.single_map) == (
        "(d0, d1, d2, d3, d4) -> (0, (d0 * 7 + d2 + 3) mod 56, (d1 * 7 + d3 + 3) mod 56, d4)"
    )


def test_pixel_shuffle_undoes_itself_in_both_modes() -> None:
    shape = (2, 18, 5, 7)
    for mode in ("DCR", "CRD"):
        wide = movement_windows.depth_to_space(shape, 3, mode)
        assert compose(movement_windows.space_to_depth(wide.shape, 3, mode), wide).is_identity()
    assert not compose(
        movement_windows.space_to_depth((2, 2, 15, 21), 3, "CRD"), movement_windows.depth_to_space(shape, 3, "DCR")
    ).is_identity()


@settings(max_examples=250, deadline=None)
@given(small_exprs(3), st.lists(st.tuples(st.integers(-4, 4), st.integers(1, 8)), min_size=3, max_size=3))
def test_random_expressions_keep_their_values(expr: Expr, bounds: list[tuple[int, int]]) -> None:
    box = Box(tuple(lo for lo, _ in bounds), tuple(lo + n for lo, n in bounds))
    before = IndexMap(box, (expr,))
    after = before.simplify()
    np.testing.assert_array_equal(evaluate(after)[0], evaluate(before)[0], err_msg=f"{before} became {after}")


@settings(max_examples=150, deadline=None)
@given(small_exprs(3), st.lists(st.integers(1, 9), min_size=3, max_size=3))
def test_simplifying_settles(expr: Expr, extents: list[int]) -> None:
    """A second pass changes nothing: passes that simplify at every step do not oscillate."""
    once = IndexMap.of(extents, (expr,)).simplify()
    assert once.simplify() == once


@settings(max_examples=120, deadline=None)
@given(small_exprs(2), small_exprs(2), st.integers(1, 8), st.integers(1, 8))
def test_equal_is_sound(a: Expr, b: Expr, n0: int, n1: int) -> None:
    box = Box.of((n0, n1))
    same = np.array_equal(*(evaluate(IndexMap(box, (e,)))[0] for e in (a, b)))
    assert same or not Simplifier(box).equal(a, b)
    assert Simplifier(box).equal(a, Simplifier(box)(a))


def test_an_empty_box_is_left_alone() -> None:
    index_map = IndexMap.of((0, 4), (dim(0) % 4, dim(1)))
    assert index_map.simplify() == index_map
    assert prove_equal(index_map, IndexMap.of((0, 4), (dim(1), dim(0))))


def test_deep_nesting_is_left_alone_and_stays_right() -> None:
    """As deep as the parser reads: no rule may exhaust the stack."""
    expr = dim(0)
    for k in range(90):
        expr = (expr % (5 + k % 3)) * 2 + dim(1) + expr // 3
    box = Box.of((4, 3))
    before = IndexMap(box, (expr,))
    np.testing.assert_array_equal(evaluate(before.simplify())[0], evaluate(before)[0])


def test_large_extents() -> None:
    """Two axes of 2^31: addresses reach 2^62, digits come out exactly."""
    n = 2**31
    flat = compose(movement.reshape((n, n), (n * 2, n // 2)), movement.reshape((n * n,), (n, n)))
    back = compose(movement.reshape((n * 2, n // 2), (n * n,)), movement.reshape((n, n), (n * 2, n // 2)))
    assert str(flat.single_map) == f"(d0, d1) -> (d0 * {n // 2} + d1)"
    assert str(back.single_map) == f"(d0) -> (d0 floordiv {n}, d0 mod {n})"


def test_two_hundred_views_take_less_than_a_second() -> None:
    """Fifty Swin blocks of four composed operators; CPU time, the least of three."""
    times = []
    for _ in range(3):
        start = time.process_time()
        for block in range(50):
            there, back = swin(56 if block % 2 else 28, 7, 3)
            assert compose(back, there).is_identity()
        times.append(time.process_time() - start)
    assert min(times) < 1.0


def test_simplified_chains_cost_less_than_raw_ones() -> None:
    shape, new = (8, 7, 8, 7, 96), (56, 56, 96)
    raw = through_linear_address(shape, new)
    assert map_cost(raw.simplify()) * 2 <= map_cost(raw)
