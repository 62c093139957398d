"""What the explanation is made of: arrangement, liveness, survivors, times, sizes, source locations."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper

from smartmem_mlir.report.explanation import Movement
from smartmem_mlir.report.graph.arrange import arrange
from smartmem_mlir.report.graph.membership import join
from smartmem_mlir.report.graph.model import Edge, Graph, Node
from smartmem_mlir.report.measure import KernelTime, parse_statistics
from smartmem_mlir.report.source_nodes import _location
from smartmem_mlir.report.source_sizes import result_bytes
from smartmem_mlir.report.survivors import remedy, survivors


def node(name: str, kind: str = "operator") -> Node:
    return Node(name=name, kind=kind, label=name)


def edge(source: int, target: int, size: int = 4) -> Edge:
    return Edge(source=source, target=target, shape=(size // 4,), dtype="f32", bytes=size)


def test_rows_and_columns() -> None:
    """A diamond, and a chain that depends on weights alone: it stands just above what reads it."""
    nodes = [node("x", "input"), node("a"), node("b"), node("c"), node("w1"), node("w2"), node("d")]
    edges = [edge(0, 1), edge(0, 2), edge(1, 3), edge(2, 3), edge(4, 5), edge(5, 6), edge(3, 6)]
    placed = {each.name: (each.row, each.column) for each in arrange(nodes, edges).nodes}
    assert {name: row for name, (row, _) in placed.items()} == {
        "x": 0, "a": 1, "b": 1, "c": 2, "w1": 1, "w2": 2, "d": 3,
    }  # fmt: skip
    assert placed["b"][1] - placed["a"][1] == 1
    rows = [(row, column) for row, column in placed.values()]
    assert len(set(rows)) == len(rows)


def test_an_edge_backwards_says_nothing_about_rows() -> None:
    graph = arrange([node("x", "input"), node("a"), node("b")], [edge(0, 1), edge(1, 2), edge(2, 1)])
    assert [each.row for each in graph.nodes] == [0, 1, 2]


def test_live_bytes() -> None:
    """x (8) lives until c, a (4) until b, b (16) until c; each counts once however many read it."""
    nodes = (node("x", "input"), node("a"), node("b"), node("c"))
    edges = (edge(0, 1, 8), edge(0, 3, 8), edge(1, 2, 4), edge(2, 3, 16))
    assert Graph(nodes=nodes, edges=edges).live_bytes() == [8, 12, 28, 24]


def test_what_a_kernel_computes() -> None:
    """scale, exp and sum belong to the kernel named after sum; the transpose to nobody; relu follows its source."""
    turn = node("turn").model_copy(update={"verdict": "eliminated"})
    before = Graph(
        nodes=(node("x", "input"), node("matmul"), turn, node("scale"), node("exp"), node("sum"), node("relu")),
        edges=(edge(0, 1), edge(1, 2), edge(2, 3), edge(3, 4), edge(4, 5), edge(3, 5), edge(5, 6)),
    )
    kernels = [
        Node(name="k0", kind="kernel", label="matmul", sources=("matmul",)),
        Node(name="k1", kind="kernel", label="sum", sources=("sum",)),
    ]
    after = Graph(nodes=(node("x", "input"), *kernels), edges=(edge(0, 1), edge(1, 2)))
    joined, with_all = join(before, after)
    assert [each.computed_by for each in joined.nodes] == ["", "matmul", "", "sum", "sum", "sum", "sum"]
    assert [each.sources for each in with_all.nodes] == [(), ("matmul",), ("sum", "scale", "exp", "relu")]


def test_survivors_come_by_size_with_a_remedy() -> None:
    def kept(name: str, size: int, how: str) -> Movement:
        return Movement(node=name, operator="Transpose", verdict="kept", how=how, bytes=size)

    movements = [
        kept("small", 8, "a copy (linalg.transpose): it is a result of the model, which has the caller's layout"),
        kept("large", 80, "a copy (linalg.generic): it reads at positions that are known only at run time"),
        Movement(node="gone", operator="Slice", verdict="eliminated", how="read through by the operator", bytes=800),
    ]
    found = survivors(movements)
    assert [each.node for each in found] == ["large", "small"]
    assert "constants" in found[0].remedy
    assert "outside the model" in found[1].remedy


@pytest.mark.parametrize(
    "reason",
    [
        "joins 3 parts that different operations compute",
        "its border is no element of what it pads, and its reader is not computed border by border",
        "a contraction reads it, whose iteration space cannot be split until the map has strides alone",
        "its readers are not structured operations that could compute the indices themselves",
        "left to IREE: no pass ran",
    ],
)
def test_every_reason_that_the_passes_give_has_a_remedy(reason: str) -> None:
    assert remedy(reason) != remedy("another reason")


def test_statistics_of_the_runner() -> None:
    text = """
IREE HAL device statistics:
  host_execute_queue p=0 q=0 dispatch  count=107 total=182.134 ms avg=1.702 ms operations=107 tiles=2335
  host_execute contraction_4x4  count=2 total=20.5 ms avg=10.380 ms tiles=36 tile_sum=21.153 ms
  host_execute rows_4  count=1 total=999 ns avg=999 ns tiles=1 tile_sum=999 ns
  host_execute rows_4  count=1 total=1.5 us avg=1.5 us tiles=1 tile_sum=1.5 us
"""
    assert parse_statistics(text) == {"contraction_4x4": KernelTime(2, 20.5e6), "rows_4": KernelTime(2, 2499.0)}


def test_sizes_of_results() -> None:
    module = """#loc1 = loc("split")
module {
  %0 = tensor.expand_shape %arg0 : tensor<4x6xf16> into tensor<4x2x3xf16> loc(#loc1)
  %1 = linalg.generic ins(%0 : tensor<4x2x3xf16>) {
  } -> tensor<3x2x4xi1> loc("Transpose 'turn'"(#loc7))
  %2 = "x.y"() : () -> tensor<?x4xf32> loc(#loc1)
}
"""
    assert result_bytes(module) == {"split": 48, "turn": 24}


def test_locations_in_the_source() -> None:
    made = helper.make_node("Transpose", ["a"], ["b"], perm=[1, 0])
    assert _location(made, 7) == "node 7 of the graph"
    trace = 'File "/a/net.py", line 3, in forward\n    f(x)\nFile "C:\\b\\attention.py", line 12, in split\n    x.t()'
    for key, value in (
        ("pkg.torch.onnx.name_scopes", "['', 'layers', 'layers.0', 'layers.0.attn', 'transpose']"),
        ("pkg.torch.onnx.stack_trace", trace),
    ):
        made.metadata_props.append(onnx.StringStringEntryProto(key=key, value=value))
    assert _location(made, 7) == "layers.0.attn, attention.py:12 in split"
    made.metadata_props[0].value = "not a list ["
    assert _location(made, 7) == "attention.py:12 in split"
