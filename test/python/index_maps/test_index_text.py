"""Maps and views as text: printing, parsing, and MLIR's own parser on what we print."""

from __future__ import annotations

import math

import pytest
from chains import Step, chains
from hypothesis import given, settings
from hypothesis import strategies as st
from test_index_compose import composed
from test_index_expr import small_exprs

from smartmem_mlir.index_maps import (
    Box,
    Fill,
    IndexMap,
    IndexMapError,
    Piece,
    View,
    dim,
    movement,
    parse_map,
    parse_view,
)
from smartmem_mlir.index_maps.expr import Expr

D0, D1, D2 = (dim(i) for i in range(3))


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (D0 // 4, "d0 floordiv 4"),
        (D0 % 8 * 7 + D1 // 7 + 3, "(d0 mod 8) * 7 + d1 floordiv 7 + 3"),
        (55 - D0, "-d0 + 55"),
        (D1 - D0 * 2 - 1, "d1 - d0 * 2 - 1"),
        (-(D0 // 2), "-(d0 floordiv 2)"),
        (D1 - D0 // 2, "d1 - d0 floordiv 2"),
        ((D0 + 3) % 56 // 7, "((d0 + 3) mod 56) floordiv 7"),
        (D0 * 0, "0"),
        (Expr(-4), "-4"),
    ],
)
def test_expressions_print_as_mlir_does(expr: Expr, text: str) -> None:
    assert str(IndexMap.of((64, 64, 64), (expr,))) == f"(d0, d1, d2) -> ({text})"
    assert parse_map(f"(d0, d1, d2) -> ({text})", Box.of((64, 64, 64))).exprs == (expr,)


@settings(max_examples=120, deadline=None)
@given(st.lists(small_exprs(3), max_size=4))
def test_maps_round_trip(exprs: list[Expr]) -> None:
    index_map = IndexMap.of((4, 5, 6), exprs)
    assert parse_map(str(index_map), index_map.domain) == index_map


@settings(max_examples=80, deadline=None)
@given(chains(5))
def test_views_round_trip(chain: list[Step]) -> None:
    view = composed(chain)
    if view is not None:
        assert parse_view(str(view)) == view


@pytest.mark.parametrize("value", [0.0, -0.0, 1e-30, -math.inf, math.inf, math.nan, 7, -7, True, False])
def test_fills_round_trip(value: float) -> None:
    view = View.of((2,), [], [Piece(Box.of((2,)), Fill(value), ())])
    assert parse_view(str(view)) == view


def test_view_text() -> None:
    view = movement.concat([(2, 4), (3, 4)], 0)
    assert str(view) == (
        "view 5x4 of (2x4), (3x4) {\n"
        "  [0:2, 0:4] = #0 (d0, d1) -> (d0, d1)\n"
        "  [2:5, 0:4] = #1 (d0, d1) -> (d0 - 2, d1)\n"
        "}"
    )
    assert str(View.identity(())) == "view scalar of (scalar) {\n  [] = #0 () -> ()\n}"
    assert parse_view(str(View.identity(()))) == View.identity(())


def test_other_spellings_are_read() -> None:
    box = Box.of((9, 9))
    parsed = parse_map("(d0,d1)->(4*d0 + -d1, d0 ceildiv 4, 2 * (d0 - 3) mod 5, ((d1)))", box)
    assert parsed.exprs == (D0 * 4 - D1, -(-D0 // 4), (D0 * 2 - 6) % 5, D1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected '\\('"),
        ("(d0) -> (d0", "expected"),
        ("(d0) -> (d1)", "does not have"),
        ("(d0, d1) -> (d0)", "rank 1"),
        ("(d0) -> (d0) extra", "unexpected"),
        ("(d0) -> (d0) d0", "unexpected 'd0'"),
        ("(d0) -> (d0 * d0)", "not a constant"),
        ("(d0) -> (d0 floordiv 0)", "positive constant"),
        ("(d0) -> (d0 mod -2)", "positive constant"),
        ("(d0)[s0] -> (d0 + s0)", "unexpected"),
        ("(d0) -> (d0 +)", "expected an expression"),
        ("(d1) -> (d1)", "expected 'd0'"),
        ("(d0) -> (" + "(" * 5000 + "d0" + ")" * 5000 + ")", "nested"),
        ("(d0) -> (" + "-" * 5000 + "d0)", "nested"),
    ],
)
def test_bad_maps_are_refused(text: str, message: str) -> None:
    with pytest.raises(IndexMapError, match=message):
        parse_map(text, Box.of((4,)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a view"),
        ("view 4 of (4) {", "not a view"),
        ("view 4 of (4) {\n  nonsense\n}", "not a piece"),
        ("view 4 of (4) {\n  [0:x] = #0 (d0) -> (d0)\n}", "not a box"),
        ("view 4 of (4) {\n  [0:4] = fill zero\n}", "not a number"),
        ("view 4 of (4) {\n  [0:4] = fill 'a'\n}", "not a number"),
        ("view 4xx of (4) {\n}", "not a shape"),
        ("view 4 of (4) {\n  [0:4] = #3 (d0) -> (d0)\n}", "operand 3 of 1"),
    ],
)
def test_bad_views_are_refused(text: str, message: str) -> None:
    with pytest.raises(IndexMapError, match=message):
        parse_view(text)


def test_mlir_reads_what_we_print() -> None:
    """MLIR's parser and printer agree with ours on values at a few hundred points."""
    from mlir import ir

    index_map = IndexMap.of(
        (64, 49, 96),
        (
            (D0 // 8 * 7 + D1 // 7 + 3) % 56,
            -(D0 // 8) - D1 // 7 * 3 + 40,
            D1 - (D0 * 2 + D2) % 5 * 4,
            (D0 * 3 - D1 + 100) % 7 // 2,
        ),
    )
    with ir.Context():
        parsed = ir.AffineMap.parse(f"affine_map<{index_map}>") if hasattr(ir.AffineMap, "parse") else None
        attribute = ir.AffineMapAttr(ir.Attribute.parse(f"affine_map<{index_map}>"))
        printed = str(attribute)
        assert parsed is None or str(parsed) in printed
    body = printed.removeprefix("affine_map<").removesuffix(">")
    again = parse_map(body, index_map.domain)
    for point in [(0, 0, 0), (63, 48, 95), (8, 7, 1), (31, 20, 50), (17, 6, 94)]:
        assert again(*point) == index_map(*point)
