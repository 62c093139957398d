"""The least cost, by constraint programming: OR-Tools' CP-SAT, with a proof or a stated gap.

Each tensor takes one candidate, each combination of candidates that an operation distinguishes is a variable tied to
them by its marginals (the local relaxation of a Markov random field, exact on trees), and the sum of costs is least. Of
equally cheap choices the one that departs least from the hint is taken, so that nothing changes without a reason.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from smartmem_mlir.layouts.problem import Problem

SEED = 20_260

Status = Literal["optimal", "feasible", "none"]


@dataclass(frozen=True)
class Solution:
    """What the solver found.

    Args:
        choice: For each variable, the number of its candidate.
        status: "optimal" (proved), "feasible" (within `gap` of the optimum), "none": nothing in time, `choice` is the
            hint.
        cost_ns: Cost of `choice`.
        bound_ns: No choice costs less.
        seconds: Time taken.
    """

    choice: tuple[int, ...]
    status: Status
    cost_ns: int
    bound_ns: int
    seconds: float

    @property
    def gap(self) -> float:
        """How much less than `cost_ns` the optimum may be, as a fraction of it."""
        return (self.cost_ns - self.bound_ns) / self.cost_ns if self.cost_ns else 0.0


def solve(problem: Problem, hint: Sequence[int], time_limit_s: float = 20.0) -> Solution:
    """The cheapest choice.

    The search has one worker, a fixed seed and a limit in deterministic time as well, so that the same problem gives
    the same choice unless the machine is so slow that the limit in seconds comes first.

    Args:
        problem: What to choose.
        hint: A choice that is known; the result is never dearer.
        time_limit_s: Seconds.
    """
    started = time.perf_counter()
    merged = problem.merged_terms()
    constant = sum(merged.pop((), (0,)))
    hint_ns = problem.cost(hint)
    if not merged or hint_ns == constant:
        return Solution(tuple(hint), "optimal", hint_ns, hint_ns, time.perf_counter() - started)
    encoding = _Encoding(problem, merged, hint, hint_ns - constant)
    status, bound = encoding.search(time_limit_s)
    choice = encoding.choice if status != "none" else tuple(hint)
    cost = problem.cost(choice)
    if cost > hint_ns:
        choice, cost = tuple(hint), hint_ns
    bound_ns = cost if status == "optimal" else max(0, min(cost, constant + bound))
    return Solution(choice, status, cost, bound_ns, time.perf_counter() - started)


class _Encoding:
    def __init__(
        self, problem: Problem, merged: dict[tuple[int, ...], tuple[int, ...]], hint: Sequence[int], most: int
    ) -> None:
        # CP-SAT takes a second to import, which only whoever solves should wait for.
        from ortools.sat.python import cp_model

        self._cp: Any = cp_model
        self._hint = tuple(hint)
        self.choice = self._hint
        self._model: Any = cp_model.CpModel()
        self._takes: list[list[Any]] = []
        for number, variable in enumerate(problem.variables):
            takes = [self._model.new_bool_var(f"x{number}_{k}") for k in range(len(variable.orders))]
            self._model.add_exactly_one(takes)
            for k, take in enumerate(takes):
                self._model.add_hint(take, k == hint[number])
            self._takes.append(takes)
        costs: list[Any] = []
        for variables, nanoseconds in merged.items():
            costs += self._priced(variables, nanoseconds)
        cost = sum(costs)
        self._model.add(cost <= most)
        departures = [
            take for number, takes in enumerate(self._takes) for k, take in enumerate(takes) if k != hint[number]
        ]
        # Cost first, departures second, in one integer.
        self._weight = len(problem.variables) + 1
        self._model.minimize(cost * self._weight + sum(departures))

    def _priced(self, variables: tuple[int, ...], nanoseconds: tuple[int, ...]) -> list[Any]:
        """What a term adds to the objective."""
        if len(variables) == 1:
            return [ns * take for ns, take in zip(nanoseconds, self._takes[variables[0]], strict=True) if ns]
        sizes = [range(len(self._takes[v])) for v in variables]
        joint = {}
        for combination in product(*sizes):
            both = self._model.new_bool_var("")
            self._model.add_hint(both, all(self._hint[v] == k for v, k in zip(variables, combination, strict=True)))
            joint[combination] = both
        for position, v in enumerate(variables):
            for k, take in enumerate(self._takes[v]):
                self._model.add(sum(both for at, both in joint.items() if at[position] == k) == take)
        return [ns * both for ns, both in zip(nanoseconds, joint.values(), strict=True) if ns]

    def search(self, time_limit_s: float) -> tuple[Status, int]:
        """Searches; returns how it ended and a lower bound of the cost without constants."""
        solver = self._cp.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = SEED
        solver.parameters.max_time_in_seconds = time_limit_s
        solver.parameters.max_deterministic_time = time_limit_s
        solver.parameters.linearization_level = 2
        ended = solver.solve(self._model)
        if ended not in (self._cp.OPTIMAL, self._cp.FEASIBLE):
            return "none", 0
        self.choice = tuple(
            next(k for k, take in enumerate(takes) if solver.boolean_value(take)) for takes in self._takes
        )
        status: Status = "optimal" if ended == self._cp.OPTIMAL else "feasible"
        return status, int(solver.best_objective_bound) // self._weight
