"""Products and determinants in forms that torch-mlir does not take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx

from smartmem_mlir.ingress.onnx_model.attributes import attribute
from smartmem_mlir.ingress.onnx_model.rewrites import build
from smartmem_mlir.ingress.onnx_model.rewrites.registry import Refuse, rewrite

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer


@rewrite("MatMul")
def matmul(graph: Specializer, node: onnx.NodeProto) -> str | None:
    """A vector operand next to one of rank 3 or more as a matrix of one row or column."""
    left, right = (graph.type(name) for name in node.input)
    if 1 not in (left.rank, right.rank) or max(left.rank, right.rank) < 3:
        return None
    a = build.reshape(graph, node.input[0], [1, *left.shape]) if left.rank == 1 else node.input[0]
    b = build.reshape(graph, node.input[1], [*right.shape, 1]) if right.rank == 1 else node.input[1]
    return build.reshape(graph, graph.emit("MatMul", [a, b]), graph.type(node.output[0]).shape)


@rewrite("Det")
def determinant(graph: Specializer, node: onnx.NodeProto) -> str:
    """The closed form for matrices up to 3 x 3; torch-mlir's elimination divides by zero pivots."""
    shape = graph.type(node.input[0]).shape
    n = shape[-1]
    if n > 3:
        raise Refuse("determinants of matrices above 3 x 3 are not supported")

    def entry(row: int, column: int) -> str:
        line = build.take(graph, node.input[0], [row], -2)
        return build.reshape(graph, build.take(graph, line, [column], -1), shape[:-2])

    def minor(rows: list[int], columns: list[int]) -> str:
        if len(rows) == 1:
            return entry(rows[0], columns[0])
        total = ""
        for i, column in enumerate(columns):
            rest = [c for c in columns if c != column]
            term = graph.emit("Mul", [entry(rows[0], column), minor(rows[1:], rest)])
            total = graph.emit("Sub" if i % 2 else "Add", [total, term]) if total else term
        return total

    return minor(list(range(n)), list(range(n)))


@rewrite("Einsum")
def einsum(graph: Specializer, node: onnx.NodeProto) -> str | None:
    """A single scalar operand is its own result: torch-mlir runs out of memory on it."""
    if len(node.input) == 1 and not graph.type(node.input[0]).rank:
        return node.input[0]
    if "..." in attribute(node, "equation") and any(graph.type(name).rank == 0 for name in node.input):
        raise Refuse("an ellipsis over a scalar is not supported")
    return None
