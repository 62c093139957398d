"""Every row of the table in simplify.py: ISL proves the identity, and the simplifier applies it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import Expr, dim
from smartmem_mlir.index_maps.isl import prove_equal
from smartmem_mlir.index_maps.map import IndexMap, evaluate
from smartmem_mlir.index_maps.simplify import Simplifier

# Far more than one period of any constant below in both directions, and nothing that ISL could enumerate.
ALL = Box((-(2**40),) * 3, (2**40,) * 3)
X, Y, Z = dim(0), dim(1), dim(2)
SMALL = (2, 3, 4, 6)


def rules() -> Iterator[tuple[str, Expr, Expr, Box]]:
    """`(rule, left side, right side, box)`: the constants run over pairs that do and do not share factors."""
    narrow = Box((-(2**40), 0, 0), (2**40, 1, 1))
    for a, b in product(SMALL, SMALL):
        yield "nested-floor", (X + Y // b) // a, (b * X + Y) // (a * b), ALL
        yield "floor-of-mod", Y % (a * b) // a, Y // a % b, ALL
        yield "pull-out", (a * X + Y) // a, X + Y // a, ALL
        yield "pull-out", (a * b * X + Y + 5 * a) // a, b * X + Y // a + 5, ALL
        yield "reduce", (a * X + Y) % a, Y % a, ALL
        yield "inner-mod", (X + Y % (a * b)) % b, (X + Y) % b, ALL
        yield "inner-mod", (X + a * (Y % b)) % (a * b), (X + a * Y) % (a * b), ALL
        yield "inner-mod under a floor", (X + a * (Y % (2 * b))) // b % a, (X + a * Y) // b % a, ALL
        yield "mirror", (1 - X) // a, -((X + a - 2) // a), ALL
        yield "mirror", (a - 1 - X) % a, a - 1 - X % a, ALL
        yield "join", X // a % b + b * (X // (a * b)), X // a, ALL
        yield "join", X % a + a * (X // a % b), X % (a * b), ALL
        high, low = X // (a * b), X // a % b
        yield "join modulo M", ((b + 5) * high + low + Y) % 5, (X // a + Y) % 5, ALL
        yield "join modulo M", ((b + 5) * high + low + Y) // 5, (X // a + Y) // 5 + high, ALL
        yield "to-mod", X // a - b * (X // (a * b)), X // a % b, ALL
        yield "to-mod", X - a * (X // a), X % a, ALL
        yield "to-floor", X // a % b - X // a, -b * (X // (a * b)), ALL
        yield "to-floor", 3 * (X % a) - 3 * X, -3 * a * (X // a), ALL
        shifting = Box((0, a - 1, 0), (a, a * b, 1))
        yield "nearest", ((a * b - 1) * X + Y) // (a * b), X, shifting
        yield "nearest", ((a * b - 1) * X + Y - 2 * a * b) % (a * b), Y - X, shifting
        for j in (0, 2):
            part = narrow.with_axis(1, j * a, (j + 1) * a)
            yield "low-part", (a * X + Y) // (a * b), (X + j) // b, part
            yield "split-mod", (a * X + Y) % (a * b), a * ((X + j) % b) + Y - j * a, part
            whole = Box((j * a,), ((j + 1) * a,))
            yield "constant", X // a, Expr(j), whole
            yield "one-period", X % a, X - j * a, whole


CASES = list(rules())


@pytest.mark.parametrize("name", sorted({name for name, *_ in CASES}))
def test_isl_proves_the_rule(name: str) -> None:
    for _, left, right, box in (case for case in CASES if case[0] == name):
        assert prove_equal(IndexMap(box, (left,)), IndexMap(box, (right,))), f"{left!r} = {right!r} on {box}"


@pytest.mark.parametrize("name", sorted({name for name, *_ in CASES}))
def test_the_simplifier_applies_the_rule(name: str) -> None:
    """Both sides end in the same expression, so whichever the model has, later rules see one form."""
    for _, left, right, box in (case for case in CASES if case[0] == name):
        simplify = Simplifier(box)
        assert simplify(left) is simplify(right), f"{left!r} = {right!r} on {box}"


def test_a_false_rule_is_refuted() -> None:
    """The condition of inner-mod matters: 4 does not divide 6."""
    assert not prove_equal(IndexMap(ALL, (X % 6 % 4,)), IndexMap(ALL, (X % 4,)))
    assert Simplifier(ALL)(X % 6 % 4) is not Simplifier(ALL)(X % 4)
    assert not Simplifier(ALL).equal(X % 6 % 4, X % 4)


def test_two_divisions_in_every_combination() -> None:
    """Each way to put one division inside another, whether or not a rule's condition on the constants holds."""
    box = Box((-7, 0), (40, 3))
    simplify = Simplifier(box)
    for a, b, shift in product(range(2, 9), range(2, 9), (0, 1, 5)):
        for inner in (X // a, X % a, 3 * (X % a) + Y, 2 * (X // a) - Y, b * (X % a) + Y, a * X + Y, 5 - X):
            for expr in ((inner + shift) // b, (inner + shift) % b):
                (before,), (after,) = evaluate(IndexMap(box, (expr,))), evaluate(IndexMap(box, (simplify(expr),)))
                assert np.array_equal(before, after), f"{expr!r} became {simplify(expr)!r}"


@st.composite
def digit_sums(draw: st.DrawFn) -> tuple[Expr, Box]:
    """Sums of digits of related values whose places and weights fit, or nearly fit, the joining rules."""
    a, m, n = (draw(st.sampled_from([2, 3, 4])) for _ in range(3))
    stride = draw(st.sampled_from([1, 2, 3, 4, a * m]))
    value = draw(st.sampled_from([X, X + 1, -X, stride * X + Y, stride * X + Y + 3, 2 * X - Y]))
    other = draw(st.sampled_from([value, value, X, X + Y, value + a, value + a * m, -1 - value]))
    places = [1, a, m, a * m, a * m * n, a * m // draw(st.sampled_from([1, stride])) or 1]
    total, weight = Expr(0), draw(st.sampled_from([1, 2, -1]))
    for x in (value, other, draw(st.sampled_from([value, other, Y]))):
        term = x // draw(st.sampled_from(places))
        if draw(st.booleans()):
            term = term % draw(st.sampled_from([m, n, m * n, a]))
        total += term * weight
        weight *= draw(st.sampled_from([1, -1, m, -m, n, a * m, m + 5]))
    outer = draw(st.sampled_from([None, None, "mod", "floordiv"]))
    if outer is not None:
        k = draw(st.sampled_from([2, 5, m, a * m]))
        total = total % k if outer == "mod" else total // k
    extent = draw(st.sampled_from([stride, stride + 1, stride - 1 or 1, 5]))
    return total, Box((draw(st.integers(-3, 3)), 0), (30, extent))


@settings(max_examples=1500, deadline=None)
@given(digit_sums())
def test_sums_of_digits_keep_their_values(case: tuple[Expr, Box]) -> None:
    expr, box = case
    after = Simplifier(box)(expr)
    (x,), (y,) = evaluate(IndexMap(box, (expr,))), evaluate(IndexMap(box, (after,)))
    assert np.array_equal(x, y), f"{expr!r} became {after!r} on {box}"


@pytest.mark.parametrize("extent", [1, 2, 3, 4])
def test_joining_needs_low_digits_that_fit(extent: int) -> None:
    """(2*x + y) % 4 and x // 2 are digits of 2*x + y while y < 2, and not one step further."""
    expr = (2 * X + Y) % 4 + 4 * (X // 2)
    box = Box((0, 0), (9, extent))
    after = Simplifier(box)(expr)
    assert np.array_equal(evaluate(IndexMap(box, (expr,)))[0], evaluate(IndexMap(box, (after,)))[0])
    assert (after is Simplifier(box)(2 * X + Y)) is (extent <= 2)
