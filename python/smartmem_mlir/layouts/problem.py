"""One decision for a whole function: a candidate order for each tensor, such that the sum of all costs is least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from smartmem_mlir.layouts.graph import Order, check_order


@dataclass(frozen=True)
class Variable:
    """A tensor and the orders that it may take.

    Args:
        name: For people.
        orders: The candidates, the written order first unless it is none of them; each a permutation.
        asked_by: For each candidate, the operation that wants it.
    """

    name: str
    orders: tuple[Order, ...]
    asked_by: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.orders or len(self.orders) != len(self.asked_by):
            raise ValueError(f"'{self.name}' needs one operation that asks for each of at least one candidate")
        if len(set(self.orders)) != len(self.orders):
            raise ValueError(f"'{self.name}' has a candidate twice")
        for order in self.orders:
            check_order(order, len(self.orders[0]))


@dataclass(frozen=True)
class Term:
    """What an operation costs, by the candidates of some tensors.

    Args:
        operation: For people.
        what: What is paid for, such as `read`.
        variables: The tensors' numbers, each once, ascending.
        nanoseconds: The cost of each combination, the last tensor's candidate counting fastest; not negative.
    """

    operation: str
    what: str
    variables: tuple[int, ...]
    nanoseconds: tuple[int, ...]

    def __post_init__(self) -> None:
        if list(self.variables) != sorted(set(self.variables)):
            raise ValueError(f"tensors {self.variables} of '{self.operation}' are not ascending")
        if any(cost < 0 for cost in self.nanoseconds):
            raise ValueError(f"'{self.operation}' has a negative cost")


@dataclass(frozen=True)
class Problem:
    """Variables and terms.

    Args:
        variables: The tensors.
        terms: The costs; their sum is the objective, in nanoseconds.
    """

    variables: tuple[Variable, ...]
    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        for term in self.terms:
            if len(term.nanoseconds) != prod(len(self.variables[v].orders) for v in term.variables):
                raise ValueError(f"'{term.operation}' does not price every combination of {term.variables}")

    def term_cost(self, term: Term, choice: Sequence[int]) -> int:
        """Nanoseconds of one term.

        Args:
            term: One of the problem's.
            choice: For each variable, the number of its candidate.
        """
        at = 0
        for v in term.variables:
            at = at * len(self.variables[v].orders) + choice[v]
        return term.nanoseconds[at]

    def cost(self, choice: Sequence[int]) -> int:
        """Nanoseconds of the whole; `choice` as for :meth:`term_cost`."""
        return sum(self.term_cost(term, choice) for term in self.terms)

    def merged_terms(self) -> dict[tuple[int, ...], tuple[int, ...]]:
        """Terms over the same tensors added up, tensors with one candidate left out; the constants are under `()`."""
        merged: dict[tuple[int, ...], list[int]] = {}
        for term in self.terms:
            # A tensor with one candidate does not change the numbering of the combinations.
            free = tuple(v for v in term.variables if len(self.variables[v].orders) > 1)
            have = merged.setdefault(free, [0] * len(term.nanoseconds))
            merged[free] = [a + b for a, b in zip(have, term.nanoseconds, strict=True)]
        return {variables: tuple(costs) for variables, costs in merged.items()}
