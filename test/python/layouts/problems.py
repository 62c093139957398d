"""Random choices of layouts, small enough to try every one."""

from __future__ import annotations

from itertools import permutations, product
from math import prod

from hypothesis import strategies as st

from smartmem_mlir.layouts.problem import Problem, Term, Variable

ORDERS = tuple(permutations(range(3)))


@st.composite
def problems(draw: st.DrawFn) -> tuple[Problem, tuple[int, ...]]:
    """A problem of at most six tensors, with loops in its graph, and a choice to start from."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    variables = tuple(Variable(f"t{i}", ORDERS[:size], ("x",) * size) for i, size in enumerate(sizes))
    terms = []
    for number in range(draw(st.integers(0, 8))):
        touched = draw(st.sets(st.integers(0, len(sizes) - 1), max_size=3))
        count = prod(sizes[v] for v in touched)
        costs = draw(st.lists(st.integers(0, 10**9), min_size=count, max_size=count))
        terms.append(Term(f"op{number}", "read", tuple(sorted(touched)), tuple(costs)))
    start = tuple(draw(st.integers(0, size - 1)) for size in sizes)
    return Problem(variables, tuple(terms)), start


def least_cost(problem: Problem) -> int:
    """The least cost of all choices, by trying each."""
    choices = product(*(range(len(variable.orders)) for variable in problem.variables))
    return min(problem.cost(choice) for choice in choices)
