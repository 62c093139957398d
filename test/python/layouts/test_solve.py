"""The solver against trying every choice, and what it promises about time, ties and repetition."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from hypothesis import given, settings
from problems import least_cost, problems

from smartmem_mlir.layouts.problem import Problem, Term, Variable
from smartmem_mlir.layouts.solve import solve


@settings(max_examples=150, deadline=None)
@given(problems())
def test_it_finds_what_trying_every_choice_finds(case: tuple[Problem, tuple[int, ...]]) -> None:
    problem, start = case
    solution = solve(problem, start)
    assert solution.status == "optimal"
    assert solution.cost_ns == solution.bound_ns == problem.cost(solution.choice) == least_cost(problem)
    assert solution.gap == 0


@settings(max_examples=50, deadline=None)
@given(problems())
def test_it_repeats_itself(case: tuple[Problem, tuple[int, ...]]) -> None:
    problem, start = case
    assert solve(problem, start).choice == solve(problem, start).choice


def two_orders(name: str) -> Variable:
    return Variable(name, ((0, 1), (1, 0)), ("as written", "op"))


def test_ties_stay_with_the_hint() -> None:
    problem = Problem(
        (two_orders("a"), two_orders("b"), two_orders("c")),
        # `a` costs the same whatever it is, `b` is to follow it, `c` is to be turned.
        (Term("agree", "view", (0, 1), (0, 5, 5, 0)), Term("turn", "read", (2,), (7, 1))),
    )
    assert solve(problem, (1, 1, 0)).choice == (1, 1, 1)
    assert solve(problem, (0, 0, 0)).choice == (0, 0, 1)


def hard(tensors: int) -> Problem:
    """Every tensor disagrees with every other: no bound is near without search."""
    generator = random.Random(1)
    orders = tuple(permutations(range(3)))
    variables = tuple(Variable(f"t{i}", orders, ("op",) * 6) for i in range(tensors))
    terms = [
        Term("op", "read", (a, b), tuple(generator.randrange(10**6) for _ in range(36)))
        for a in range(tensors)
        for b in range(a + 1, tensors)
    ]
    return Problem(variables, tuple(terms))


def test_a_search_that_is_cut_short_is_no_dearer_than_the_hint_and_says_what_it_does_not_know() -> None:
    problem = hard(24)
    hint = (0,) * 24
    solution = solve(problem, hint, time_limit_s=0.5)
    assert solution.status != "optimal"
    assert solution.cost_ns == problem.cost(solution.choice) <= problem.cost(hint)
    assert 0 <= solution.bound_ns < solution.cost_ns
    assert 0 < solution.gap <= 1
    assert solution.seconds < 5


@pytest.mark.parametrize(
    ("orders", "what"),
    [
        (((0, 1), (1, 1)), "not an order"),  # two elements in one place
        (((0, 1), (0, 2)), "not an order"),  # beyond the tensor
        (((0, 1), (0,)), "not an order"),
        (((0, 1), (0, 1)), "twice"),
        ((), "at least one"),
    ],
)
def test_layouts_are_injective_and_bounded(orders: tuple[tuple[int, ...], ...], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        Variable("t", orders, ("op",) * len(orders))


def test_terms_price_every_combination() -> None:
    with pytest.raises(ValueError, match="does not price"):
        Problem((two_orders("a"),), (Term("op", "read", (0,), (1,)),))
    with pytest.raises(ValueError, match="negative"):
        Term("op", "read", (0,), (1, -1))
    with pytest.raises(ValueError, match="not ascending"):
        Term("op", "read", (1, 0), (0, 0, 0, 0))
