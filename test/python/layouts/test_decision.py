"""Choosing for whole functions: never worse than the paper's rule, the caller's orders kept, the rates obeyed."""

from __future__ import annotations

import sys
from dataclasses import replace
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smartmem_mlir.index_maps.expr import dim
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.layouts import decision as decisions
from smartmem_mlir.layouts.candidates import MAX_CANDIDATES, find_candidates
from smartmem_mlir.layouts.cost import price
from smartmem_mlir.layouts.decision import decide
from smartmem_mlir.layouts.graph import Graph, Loops, Move, Opaque, Operation, Tensor, Use
from smartmem_mlir.layouts.greedy import greedy_layouts
from smartmem_mlir.layouts.rates import Rates
from smartmem_mlir.layouts.solve import Solution

C, H, W = (dim(i) for i in range(3))


class Network:
    """Builds a graph of convolutions and elementwise operations on channels-first images."""

    def __init__(self, channels: int, size: int) -> None:
        self.tensors = [Tensor("x", (channels, size, size), 4, pinned=True)]
        self.operations: list[Operation] = []

    def add(self, name: str, shape: tuple[int, ...], **flags: bool) -> int:
        self.tensors.append(Tensor(name, shape, 4, **flags))
        return len(self.tensors) - 1

    def conv(self, source: int, channels: int, taps: int = 1) -> int:
        """A convolution whose weights are constant."""
        deep, height, _ = self.tensors[source].shape
        name = f"conv{len(self.operations)}"
        weight = self.add("w", (channels, deep, taps, taps), pinned=True, constant=True)
        size = height - taps + 1
        result = self.add(name, (channels, size, size))
        f, h, w, c, r, s = (dim(i) for i in range(6))
        self.operations.append(
            Loops(
                name,
                (channels, size, size, deep, taps, taps),
                (False,) * 3 + (True,) * 3,
                (Use(source, (c, h + r, w + s)), Use(weight, (f, c, r, s))),
                (Use(result, (f, h, w)),),
                (None,),
                contraction=True,
                has_kernel=True,
            )
        )
        return result

    def depthwise(self, source: int) -> int:
        """A 1x1 convolution of each channel alone."""
        shape = self.tensors[source].shape
        weight = self.add("w", (shape[0], 1), pinned=True, constant=True)
        name = f"depthwise{len(self.operations)}"
        result = self.add(name, shape)
        reads = (Use(source, (C, H, W)), Use(weight, (C, dim(3))))
        flags = (False, False, False, True)
        loops = Loops(name, (*shape, 1), flags, reads, (Use(result, (C, H, W)),), (None,), True, True)
        self.operations.append(loops)
        return result

    def pointwise(self, *sources: int) -> int:
        """An elementwise operation."""
        shape = self.tensors[sources[0]].shape
        name = f"add{len(self.operations)}"
        result = self.add(name, shape)
        uses = tuple(Use(source, (C, H, W)) for source in sources)
        self.operations.append(Loops(name, shape, (False,) * 3, uses, (Use(result, (C, H, W)),), (None,)))
        return result

    def transpose(self, source: int) -> int:
        """A view that swaps the image's axes."""
        c, h, w = self.tensors[source].shape
        name = f"transpose{len(self.operations)}"
        result = self.add(name, (c, w, h))
        view = View.mapped((c, w, h), (c, h, w), (C, W, H))
        self.operations.append(Move(name, view, (source,), result))
        return result

    def graph(self, *results: int) -> Graph:
        """The graph, returning some tensors."""
        return Graph(tuple(self.tensors), (*self.operations, Opaque("return", results)))


@st.composite
def networks(draw: st.DrawFn) -> Graph:
    network = Network(draw(st.integers(1, 40)), draw(st.integers(1, 20)))
    image = 0
    for kind in draw(st.lists(st.sampled_from(["conv", "depthwise", "add", "twice", "transpose"]), max_size=7)):
        if kind == "conv":
            size = network.tensors[image].shape[1]
            image = network.conv(image, draw(st.integers(1, 40)), draw(st.sampled_from([1, min(3, size)])))
        elif kind == "depthwise":
            image = network.depthwise(image)
        elif kind == "transpose":
            image = network.transpose(image)
        else:
            image = network.pointwise(image, image) if kind == "twice" else network.pointwise(image)
    return network.graph(image)


@settings(max_examples=60, deadline=None)
@given(networks())
def test_it_is_never_worse_than_the_paper_and_keeps_what_is_given(graph: Graph) -> None:
    orders, told = decide(graph, "solver", Rates())
    assert told.status == "optimal"
    assert told.bound_ns == told.objective_ns <= min(told.paper_ns, told.written_ns)
    for tensor, order in zip(graph.tensors, orders, strict=True):
        assert sorted(order) == list(range(len(tensor.shape)))
        if tensor.pinned:
            assert order == tuple(range(len(tensor.shape)))
    assert decide(graph, "solver", Rates())[0] == orders
    paper, told = decide(graph, "paper", Rates())
    assert paper == greedy_layouts(graph).orders
    assert (told.status, told.objective_ns) == ("rule", told.paper_ns)


@settings(max_examples=40, deadline=None)
@given(networks())
def test_candidates_are_few_and_hold_the_written_and_the_papers_order(graph: Graph) -> None:
    paper = greedy_layouts(graph)
    for tensor, variable, order in zip(graph.tensors, find_candidates(graph, paper), paper.orders, strict=True):
        assert len(variable.orders) <= (1 if tensor.pinned else MAX_CANDIDATES)
        assert variable.orders[0] == tuple(range(len(tensor.shape)))
        assert order in variable.orders


def test_convolutions_become_channels_last_with_a_copy_at_the_end() -> None:
    network = Network(64, 30)
    first = network.conv(0, 64, 3)
    second = network.conv(network.pointwise(first), 64, 3)
    orders, told = decide(network.graph(second), "solver", Rates())
    assert orders[first] == orders[second] == (1, 2, 0)
    asked = {layout.tensor: layout.asked_by for layout in told.layouts}
    assert (asked["conv0"], asked["add1"], asked["conv2"]) == ("conv0", "conv0", "conv2")
    assert told.permuted == 3


def test_one_small_convolution_stays_as_it_is_written_where_copies_are_dear() -> None:
    network = Network(16, 64)
    only = network.conv(0, 16)
    dear = replace(Rates(), strided_element_ns=50.0)
    assert decide(network.graph(only), "solver", dear)[0][only] == (0, 1, 2)
    cheap = replace(Rates(), strided_element_ns=0.001, unpacked_kernel_macs_per_ns=0.5)
    assert decide(network.graph(only), "solver", cheap)[0][only] == (1, 2, 0)


def test_the_solver_sees_what_one_sweep_cannot() -> None:
    # The paper's rule has an elementwise operation follow its first operand; all that come after pay for it.
    network = Network(48, 28)
    image = network.pointwise(0)
    for _ in range(4):
        image = network.depthwise(image)
    graph = network.graph(image)
    _, told = decide(graph, "solver", replace(Rates(), vector_product_macs_per_ns=0.2))
    assert told.objective_ns <= told.paper_ns


def test_without_an_answer_the_papers_rule_stands_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(8, 8)
    graph = network.graph(network.conv(0, 8))
    monkeypatch.setattr(decisions, "solve", lambda problem, hint, limit: Solution(tuple(hint), "none", 1, 0, 3.0))
    orders, told = decide(graph, "solver", Rates(), time_limit_s=3)
    assert orders == greedy_layouts(graph).orders
    assert (told.asked, told.method, told.status) == ("solver", "paper", "rule")
    assert told.reason == "the solver found nothing within 3 s"


def test_without_or_tools_the_papers_rule_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(8, 8)
    graph = network.graph(network.conv(0, 8))
    for name in [name for name in sys.modules if name.split(".")[0] == "ortools"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(decisions, "find_spec", lambda name: None)
    orders, told = decide(graph, "solver", Rates())
    assert orders == greedy_layouts(graph).orders
    assert told.reason == "OR-Tools is not installed"


def test_a_lost_kernel_is_paid_for() -> None:
    network = Network(32, 16)
    result = network.depthwise(network.pointwise(0))
    graph = network.graph(result)
    variables = find_candidates(graph, greedy_layouts(graph))
    problem = price(graph, variables, Rates())
    kernel = next(term for term in problem.terms if term.what == "kernel")
    work = prod((32, 16, 16))
    # Lanes along channels need both tensors channels-last; rows of the image work as lanes in both as written.
    assert min(kernel.nanoseconds) < work / Rates().fallback_matmul_macs_per_ns <= max(kernel.nanoseconds) + 1


@pytest.mark.parametrize("field", ["stream_bytes_per_ns", "kernel_launch_ns"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_rates_are_positive_numbers(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        Rates.of({field: value})
