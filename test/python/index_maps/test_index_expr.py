"""Expressions and boxes: interning, normal form, interval arithmetic, merging of boxes."""

from __future__ import annotations

import copy
import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smartmem_mlir.index_maps.box import Box, Ranges, merge_boxes
from smartmem_mlir.index_maps.errors import IndexMapError, IndexOverflowError
from smartmem_mlir.index_maps.expr import Dim, Expr, FloorDiv, const, dim, term_count
from smartmem_mlir.index_maps.map import IndexMap, evaluate


def test_structurally_equal_expressions_are_one_object() -> None:
    a = (dim(0) * 4 + dim(1)) // 8 + dim(2) % 3
    b = dim(2) % 3 + (dim(1) + 4 * dim(0)) // 8
    assert a is b
    assert len({a, b}) == 1


def test_collecting_terms_is_free() -> None:
    assert (dim(0) + dim(1)) * 3 - dim(1) * 3 - dim(0) * 2 is dim(0)
    assert dim(0) - dim(0) is const(0)
    assert 7 - (3 - dim(1)) is dim(1) + 4


def test_expressions_are_immutable_and_survive_copying_and_pickling() -> None:
    expr = (dim(0) % 5) // 2 - 3
    with pytest.raises(AttributeError, match="immutable"):
        expr.const = 1
    with pytest.raises(AttributeError, match="immutable"):
        Dim(0).index = 1
    assert copy.deepcopy(expr) is expr
    assert pickle.loads(pickle.dumps(expr)) is expr


@pytest.mark.parametrize("value", [0, -4])
def test_division_by_something_not_positive_is_refused(value: int) -> None:
    with pytest.raises(IndexMapError, match="positive constant"):
        dim(0) // value
    with pytest.raises(IndexMapError, match="positive constant"):
        FloorDiv(dim(0), value)


def test_constants_fold_with_floor_semantics() -> None:
    assert const(-7) // 4 is const(-2)
    assert const(-7) % 4 is const(1)
    assert dim(3) % 1 is const(0)
    assert dim(3) // 1 is dim(3)


def test_substitution_shares_work() -> None:
    """Sixty levels that each use the one below twice: 2^60 leaves as a tree."""
    expr = dim(0)
    for _ in range(60):
        expr = expr // 2 + expr % 3
    moved = expr.substitute([dim(1) + 5])
    assert moved.dims == {1}
    assert len(list(moved.subexprs())) == 61
    assert term_count([moved]) > 2**60
    assert len(repr(moved)) < 5000


def test_dims_of_an_expression() -> None:
    assert (dim(3) // 2 + dim(1) * 5).dims == {1, 3}
    assert dim(1).shift_dims(4) is dim(5)


def test_box_bounds() -> None:
    assert Box.of([]).volume == 1
    assert Box.of([3, 0]).is_empty
    with pytest.raises(IndexMapError, match="negative"):
        Box.of([3, -1])
    with pytest.raises(IndexMapError, match="above"):
        Box((2,), (1,))
    with pytest.raises(IndexOverflowError, match=r"2\^63"):
        Box.of([2**21, 2**21, 2**21])
    with pytest.raises(IndexOverflowError):
        Box.of([0, 2**40, 2**40])
    assert Box.of([2**31, 2**31]).volume == 2**62


@st.composite
def small_exprs(draw: st.DrawFn, rank: int, depth: int = 3) -> Expr:
    total = const(draw(st.integers(-9, 9)))
    for _ in range(draw(st.integers(1, 3))):
        if depth == 0 or draw(st.booleans()):
            part = dim(draw(st.integers(0, rank - 1)))
        else:
            inner = draw(small_exprs(rank, depth - 1))
            k = draw(st.sampled_from([2, 3, 4, 5, 7, 8, 12]))
            part = inner // k if draw(st.booleans()) else inner % k
        total = total + part * draw(st.sampled_from([1, 1, 2, 3, 4, 7, 8, -1, -3]))
    return total


@settings(max_examples=150, deadline=None)
@given(small_exprs(2), st.integers(-5, 5), st.integers(1, 9), st.integers(-5, 5), st.integers(1, 9))
def test_ranges_contain_every_value(expr: Expr, lo0: int, n0: int, lo1: int, n1: int) -> None:
    box = Box((lo0, lo1), (lo0 + n0, lo1 + n1))
    (values,) = evaluate(IndexMap(box, (expr,)))
    lo, hi = Ranges(box).of(expr)
    assert lo <= values.min()
    assert values.max() <= hi


@settings(max_examples=100, deadline=None)
@given(small_exprs(2), st.integers(1, 6), st.integers(1, 6))
def test_the_numpy_oracle_agrees_with_python_integers(expr: Expr, n0: int, n1: int) -> None:
    index_map = IndexMap.of((n0, n1), (expr,))
    (values,) = evaluate(index_map)
    for point in product(range(n0), range(n1)):
        assert index_map(*point) == (values[point],)


def test_overflowing_values_are_refused_by_the_oracle() -> None:
    index_map = IndexMap.of((4,), (dim(0) * 2**62,))
    with pytest.raises(IndexOverflowError, match=r"2\^63"):
        evaluate(index_map)
    with pytest.raises(IndexOverflowError):
        index_map.simplify()


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 4), st.randoms(use_true_random=False))
def test_merging_boxes_keeps_the_points(a: int, b: int, c: int, random: object) -> None:
    cells = [Box(p, tuple(x + 1 for x in p)) for p in product(range(a), range(b), range(c)) if random.random() < 0.8]  # type: ignore[attr-defined]
    merged = merge_boxes(cells)
    count = np.zeros((a, b, c), int)
    for box in merged:
        count[tuple(slice(lo, hi) for lo, hi in zip(box.lo, box.hi, strict=True))] += 1
    for cell in cells:
        count[cell.lo] -= 1
    assert not count.any()
    assert len(merged) <= len(cells)


def test_a_full_grid_of_cells_merges_to_one_box() -> None:
    cells = [Box(p, tuple(x + 1 for x in p)) for p in product(range(4), range(3), range(5))]
    assert merge_boxes(cells) == [Box.of((4, 3, 5))]
    assert merge_boxes([Box((), ())]) == [Box((), ())]
