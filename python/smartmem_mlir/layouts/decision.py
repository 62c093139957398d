"""The choice of layouts for one function, and what there is to tell about it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal, TypeAlias

from smartmem_mlir.layouts.candidates import find_candidates
from smartmem_mlir.layouts.cost import price
from smartmem_mlir.layouts.graph import Graph, Order, identity_order
from smartmem_mlir.layouts.greedy import greedy_layouts
from smartmem_mlir.layouts.problem import Problem
from smartmem_mlir.layouts.rates import Rates
from smartmem_mlir.layouts.solve import Solution, solve

Method: TypeAlias = Literal["solver", "paper"]

DEFAULT_TIME_LIMIT_S = 20.0


@dataclass(frozen=True)
class TensorLayout:
    """The layout of a tensor that is not stored as it is written.

    Args:
        tensor: The source node that computes it.
        shape: Its extents as written.
        order: Its dimensions from the outermost to the contiguous one.
        asked_by: The operation that wants it.
    """

    tensor: str
    shape: tuple[int, ...]
    order: Order
    asked_by: str


@dataclass(frozen=True)
class LayoutDecision:
    """How the layouts of a function were chosen.

    Args:
        asked: The method that was asked for.
        method: The one that the layouts come from.
        status: "optimal": no choice of the candidates costs less; "feasible": none costs less than `bound_ns`; "rule":
            the paper's rule, which proves nothing.
        reason: Why `method` is not the one that was asked for; empty if it is.
        objective_ns: Modelled cost of the layouts, of one inference on one core.
        bound_ns: No choice of the candidates costs less; 0 where nothing is proved.
        gap: By what fraction of `objective_ns` the optimum may be cheaper.
        paper_ns: Modelled cost by the paper's rule.
        written_ns: Modelled cost of every tensor as it is written.
        seconds: Time to choose.
        tensors: How many tensors there are.
        permuted: How many of them are not stored as they are written.
        candidates: Orders that were considered, of all tensors together.
        layouts: Those tensors that are not stored as they are written.
    """

    asked: Method
    method: Method
    status: Literal["optimal", "feasible", "rule"]
    reason: str
    objective_ns: int
    bound_ns: int
    gap: float
    paper_ns: int
    written_ns: int
    seconds: float
    tensors: int
    permuted: int
    candidates: int
    layouts: tuple[TensorLayout, ...]


def decide(
    graph: Graph, method: Method, rates: Rates, time_limit_s: float = DEFAULT_TIME_LIMIT_S
) -> tuple[tuple[Order, ...], LayoutDecision]:
    """Chooses the order of every tensor of a function.

    Args:
        graph: The function.
        method: "solver" for the cheapest choice, "paper" for the paper's rule.
        rates: The target.
        time_limit_s: How long the solver may take.

    Returns:
        The order of each tensor, and what there is to tell.
    """
    paper = greedy_layouts(graph)
    problem = price(graph, find_candidates(graph, paper), rates)
    hint = tuple(variable.orders.index(order) for variable, order in zip(problem.variables, paper.orders, strict=True))
    solution, reason = _solve(problem, hint, time_limit_s) if method == "solver" else (None, "")
    choice = hint if solution is None else solution.choice
    orders = tuple(variable.orders[k] for variable, k in zip(problem.variables, choice, strict=True))
    return orders, _decision(graph, problem, method, solution, reason, choice, hint)


def _solve(problem: Problem, hint: tuple[int, ...], time_limit_s: float) -> tuple[Solution | None, str]:
    if find_spec("ortools") is None:
        return None, "OR-Tools is not installed"
    solution = solve(problem, hint, time_limit_s)
    if solution.status == "none":
        return None, f"the solver found nothing within {time_limit_s:g} s"
    return solution, ""


def _decision(
    graph: Graph,
    problem: Problem,
    asked: Method,
    solution: Solution | None,
    reason: str,
    choice: tuple[int, ...],
    hint: tuple[int, ...],
) -> LayoutDecision:
    layouts = tuple(
        TensorLayout(tensor.name, tensor.shape, variable.orders[k], variable.asked_by[k])
        for tensor, variable, k in zip(graph.tensors, problem.variables, choice, strict=True)
        if variable.orders[k] != identity_order(len(tensor.shape))
    )
    cost = problem.cost(choice)
    return LayoutDecision(
        asked=asked,
        method="paper" if solution is None else "solver",
        status="rule" if solution is None or solution.status == "none" else solution.status,
        reason=reason,
        objective_ns=cost,
        bound_ns=solution.bound_ns if solution is not None else 0,
        gap=round(solution.gap if solution is not None else 1.0, 6),
        paper_ns=problem.cost(hint),
        written_ns=problem.cost((0,) * len(problem.variables)),
        seconds=round(solution.seconds if solution is not None else 0.0, 3),
        tensors=len(graph.tensors),
        permuted=len(layouts),
        candidates=sum(len(variable.orders) for variable in problem.variables),
        layouts=layouts,
    )
