"""Loops with a trip count that is known at import, as their iterations one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx

from smartmem_mlir.errors import InvalidModelError
from smartmem_mlir.ingress.onnx_model import structure
from smartmem_mlir.ingress.onnx_model.attributes import attribute
from smartmem_mlir.ingress.onnx_model.control_flow import walk_graph
from smartmem_mlir.ingress.onnx_model.rewrites import Refuse, build

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer

MAX_UNROLLED_NODES = 4096
"""Iterations times nodes of the body; more would make the module, not the loop, the problem."""


def unroll(graph: Specializer, node: onnx.NodeProto) -> list[str]:
    """Walk the iterations of a Loop or Scan.

    Returns:
        The names of the results: final states, then what the iterations yield, stacked.

    Raises:
        Refuse: The number of iterations is not known at import, or too large.
    """
    body = attribute(node, "body")
    if not isinstance(body, onnx.GraphProto):
        raise InvalidModelError("the loop has no body", file=graph.file, node=structure.node_label(node))
    results = _unroll_loop(graph, node, body) if node.op_type == "Loop" else _unroll_scan(graph, node, body)
    return results[: len(node.output)]


def _unroll_loop(graph: Specializer, node: onnx.NodeProto, body: onnx.GraphProto) -> list[str]:
    count = graph.constant(node.input[0]) if node.input[0] else None
    going = graph.constant(node.input[1]) if len(node.input) > 1 and node.input[1] else np.asarray(True)
    if going is None or count is None or count.size != 1 or going.size != 1:
        raise Refuse("its number of iterations is only known when the model runs")
    states = list(node.input[2:])
    _check_arity(graph, node, body, 2 + len(states), 1 + len(states))
    _check_size(body, int(count.item()))
    yielded: list[list[str]] = [[] for _ in body.output[1 + len(states) :]]
    for iteration in range(int(count.item())):
        if not going.item():
            break
        operands = [graph.const(iteration), graph.const(True, np.bool_), *states]
        condition, *results = walk_graph(graph, body, operands)
        states = results[: len(states)]
        for series, value in zip(yielded, results[len(states) :], strict=True):
            series.append(value)
        going = graph.constant(condition)
        if going is None or going.size != 1:
            raise Refuse("its condition is only known when the model runs")
    if any(not series for series in yielded):
        raise Refuse("it has no iteration, so the shape of what it yields is unknown")
    return [*states, *(_stack(graph, series, 0) for series in yielded)]


def _unroll_scan(graph: Specializer, node: onnx.NodeProto, body: onnx.GraphProto) -> list[str]:
    scanned = attribute(node, "num_scan_inputs", 0)
    if not 0 < scanned <= len(node.input):
        raise InvalidModelError("num_scan_inputs is wrong", file=graph.file, node=structure.node_label(node))
    states, sequences = list(node.input[:-scanned]), list(node.input[-scanned:])
    _check_arity(graph, node, body, len(node.input), len(states))
    outputs = len(body.output) - len(states)
    in_axes = attribute(node, "scan_input_axes", [0] * scanned)
    in_reversed = attribute(node, "scan_input_directions", [0] * scanned)
    out_axes = attribute(node, "scan_output_axes", [0] * outputs)
    out_reversed = attribute(node, "scan_output_directions", [0] * outputs)
    length = graph.type(sequences[0]).shape[in_axes[0]]
    _check_size(body, length)
    yielded: list[list[str]] = [[] for _ in range(outputs)]
    for iteration in range(length):
        operands = []
        for value, axis, backwards in zip(sequences, in_axes, in_reversed, strict=True):
            place = graph.const(length - 1 - iteration if backwards else iteration)
            operands.append(graph.emit("Gather", [value, place], axis=axis))
        results = walk_graph(graph, body, [*states, *operands])
        states = results[: len(states)]
        for series, value in zip(yielded, results[len(states) :], strict=True):
            series.append(value)
    stacked = [
        _stack(graph, series[::-1] if backwards else series, axis)
        for series, axis, backwards in zip(yielded, out_axes, out_reversed, strict=True)
    ]
    return [*states, *stacked]


def _check_arity(graph: Specializer, node: onnx.NodeProto, body: onnx.GraphProto, inputs: int, states: int) -> None:
    if len(body.input) != inputs or len(body.output) < states:
        raise InvalidModelError("the loop's body does not fit it", file=graph.file, node=structure.node_label(node))


def _check_size(body: onnx.GraphProto, iterations: int) -> None:
    if iterations * max(len(body.node), 1) > MAX_UNROLLED_NODES:
        raise Refuse(f"{iterations} iterations of {len(body.node)} nodes are too many to unroll")


def _stack(graph: Specializer, values: Sequence[str], axis: int) -> str:
    shape = list(graph.type(values[0]).shape)
    axis %= len(shape) + 1
    apart = [build.reshape(graph, value, [*shape[:axis], 1, *shape[axis:]]) for value in values]
    return build.concat(graph, apart, axis)
