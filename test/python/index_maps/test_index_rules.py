"""Every row of the table in simplify.py: ISL proves the identity, and the simplifier applies it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import Expr, dim
from smartmem_mlir.index_maps.isl import prove_equal
from smartmem_mlir.index_maps.map import IndexMap
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
        yield "to-mod", X // a - b * (X // (a * b)), X // a % b, ALL
        yield "to-mod", X - a * (X // a), X % a, ALL
        yield "to-floor", X // a % b - X // a, -b * (X // (a * b)), ALL
        yield "to-floor", 3 * (X % a) - 3 * X, -3 * a * (X // a), ALL
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
