"""Proofs: agreement with exhaustive enumeration in both directions, exact bounds, injectivity, and the step budget."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_index_expr import small_exprs

from smartmem_mlir.index_maps import (
    Box,
    IndexMap,
    IndexMapError,
    ProofInconclusiveError,
    View,
    dim,
    evaluate,
    movement,
    movement_windows,
)
from smartmem_mlir.index_maps import isl as proofs
from smartmem_mlir.index_maps.expr import Expr


@settings(max_examples=200, deadline=None)
@given(small_exprs(2), small_exprs(2), st.integers(1, 7), st.integers(1, 7), st.sampled_from(["other", "same", "off"]))
def test_prove_equal_agrees_with_enumeration(a: Expr, b: Expr, n0: int, n1: int, kind: str) -> None:
    """Unrelated pairs, pairs that are equal by a rewrite, and pairs that differ at single points only."""
    box = Box.of((n0, n1))
    if kind == "same":
        (b,) = IndexMap(box, (a,)).simplify().exprs
    elif kind == "off":
        b = a + (dim(0) + dim(1) + 1) // (n0 + n1 - 1)
    p, q = IndexMap(box, (a,)), IndexMap(box, (b,))
    expected = bool(np.array_equal(evaluate(p)[0], evaluate(q)[0]))
    assert proofs.prove_equal(p, q) is expected
    assert kind != "same" or expected
    assert kind != "off" or not expected


@settings(max_examples=60, deadline=None)
@given(small_exprs(2), small_exprs(2), st.integers(1, 6), st.integers(1, 6))
def test_injectivity_agrees_with_enumeration(a: Expr, b: Expr, n0: int, n1: int) -> None:
    index_map = IndexMap.of((n0, n1), (a, b))
    points = np.stack([v.ravel() for v in evaluate(index_map)], axis=1)
    assert proofs.is_injective(index_map) is (len(np.unique(points, axis=0)) == n0 * n1)


@settings(max_examples=60, deadline=None)
@given(small_exprs(2), st.integers(1, 6), st.integers(1, 6))
def test_exact_bounds_agree_with_enumeration(a: Expr, n0: int, n1: int) -> None:
    index_map = IndexMap.of((n0, n1), (a,))
    (values,) = evaluate(index_map)
    assert proofs.exact_bounds(index_map) == Box((int(values.min()),), (int(values.max()) + 1,))


def test_proofs_on_boxes_that_cannot_be_enumerated() -> None:
    n = 2**31
    a = IndexMap.of((n, n), ((dim(0) * n + dim(1)) // n, (dim(0) * n + dim(1)) % n))
    assert proofs.prove_equal(a, IndexMap.identity((n, n)))
    assert not proofs.prove_equal(a, IndexMap.of((n, n), (dim(0), (dim(1) + 1) % n)))
    assert proofs.is_injective(a)
    assert proofs.exact_bounds(a) == Box.of((n, n))


def test_comparing_on_part_of_the_domain() -> None:
    a, b = IndexMap.of((8,), (dim(0) % 4,)), IndexMap.of((8,), (dim(0),))
    assert not proofs.prove_equal(a, b)
    assert proofs.prove_equal(a, b, Box.of((4,)))
    assert proofs.prove_equal(a, b, Box((3,), (3,)))


def test_maps_of_different_rank_cannot_be_compared() -> None:
    with pytest.raises(IndexMapError, match="different domains"):
        proofs.prove_equal(IndexMap.identity((2,)), IndexMap.identity((3,)))
    with pytest.raises(IndexMapError, match="different rank"):
        proofs.prove_equal(IndexMap.identity((2,)), IndexMap.of((2,), ()))
    with pytest.raises(IndexMapError, match="no bounds"):
        proofs.exact_bounds(IndexMap.identity((0,)))


def test_rank_zero() -> None:
    assert proofs.prove_equal(IndexMap.of((), (Expr(3),)), IndexMap.of((), (Expr(3),)))
    assert not proofs.prove_equal(IndexMap.of((), (Expr(3),)), IndexMap.of((), (Expr(4),)))
    assert proofs.is_injective(IndexMap.of((), ()))
    assert not proofs.is_injective(IndexMap.of((2,), ()))


def test_beyond_the_budget_small_boxes_are_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "MAX_OPERATIONS", 1)
    a = IndexMap.of((6, 6), ((dim(0) * 6 + dim(1)) // 4, (dim(0) * 6 + dim(1)) % 4))
    assert proofs.prove_equal(a, a.simplify())
    assert not proofs.prove_equal(a, IndexMap.of((6, 6), (dim(0), dim(1))))
    assert proofs.is_injective(a)
    assert proofs.exact_bounds(a) == Box.of((9, 4))


def test_beyond_the_budget_large_boxes_are_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "MAX_OPERATIONS", 1)
    a = IndexMap.of((2**20, 6), ((dim(0) * 6 + dim(1)) // 4,))
    with pytest.raises(ProofInconclusiveError, match="budget"):
        proofs.prove_equal(a, IndexMap.of((2**20, 6), (dim(0),)))


def test_views_of_different_structure_can_be_equal() -> None:
    from smartmem_mlir.index_maps.merge import split_wraps

    view = movement.roll((7, 5), (3, 2), (0, 1))
    assert proofs.prove_views_equal(view, split_wraps(view))
    assert not proofs.prove_views_equal(view, movement.roll((7, 5), (3, 1), (0, 1)))
    assert not proofs.prove_views_equal(view, View.identity((7, 5)))
    assert not proofs.prove_views_equal(View.identity((5, 7)), View.identity((7, 5)))


def test_views_of_other_operands_or_constants_differ() -> None:
    view = movement.concat([(3,), (3,)], 0)
    exchanged = view.with_pieces([replace(piece, source=1 - piece.source) for piece in view.pieces])
    assert not proofs.prove_views_equal(view, exchanged)
    zeros, ones = (movement_windows.pad((3,), (1,), (0,), "constant", value) for value in (0.0, 1.0))
    assert proofs.prove_views_equal(zeros, movement_windows.pad((3,), (1,), (0,), "constant", 0.0))
    assert not proofs.prove_views_equal(zeros, ones)
    assert not proofs.prove_chain([zeros], [], ones)
