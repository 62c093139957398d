"""Recurrent networks over a sequence of known length, step by step.

torch-mlir takes only forward ones and ignores some of their attributes (peepholes come out wrong). The products of all
inputs with the weights are one matrix product; only the recurrent products remain in the steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import onnx

from smartmem_mlir.ingress.onnx_model.attributes import attribute
from smartmem_mlir.ingress.onnx_model.rewrites import build
from smartmem_mlir.ingress.onnx_model.rewrites.registry import Refuse, rewrite

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer

MAX_STEPS = 512
"""Steps times directions that are unrolled."""

_ACTIVATIONS = frozenset({"Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"})

_DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


@dataclass(frozen=True)
class _Direction:
    """One direction's operands, without the dimension of directions.

    Args:
        graph: Where nodes are emitted.
        node: The recurrent node.
        size: Elements of the hidden state, H.
        inputs: `x_t W^T + Wb` for all steps, [steps, batch, gates * H].
        recurrence: `R^T`, [H, gates * H].
        bias: The recurrent bias [gates * H], or "".
        peepholes: [3 * H], or "".
        activations: Operators of the gates and states.
    """

    graph: Specializer
    node: onnx.NodeProto
    size: int
    inputs: str
    recurrence: str
    bias: str
    peepholes: str
    activations: list[str]

    def gate(self, value: str, index: int) -> str:
        """One gate's part of the last dimension."""
        axis = self.graph.type(value).rank - 1
        return build.cut(self.graph, value, axis, index * self.size, (index + 1) * self.size)

    def add(self, *values: str) -> str:
        """A sum; "" is zero."""
        total, *rest = filter(None, values)
        for value in rest:
            total = self.graph.emit("Add", [total, value])
        return total

    def mul(self, left: str, right: str) -> str:
        """A product."""
        return str(self.graph.emit("Mul", [left, right]))

    def activate(self, index: int, value: str) -> str:
        """An activation, of the clipped value if the node clips."""
        limit = attribute(self.node, "clip")
        if limit:
            low, high = (build.scalar(self.graph, bound, value) for bound in (-limit, limit))
            value = self.graph.emit("Min", [self.graph.emit("Max", [value, low]), high])
        return str(self.graph.emit(self.activations[index], [value]))

    def complement(self, value: str) -> str:
        """One minus the value."""
        return str(self.graph.emit("Sub", [build.scalar(self.graph, 1, value), value]))


_Step = Callable[[_Direction, str, list[str]], list[str]]


def _lstm_step(d: _Direction, x: str, states: list[str]) -> list[str]:
    hidden, cell = states
    sums = d.add(x, d.graph.emit("MatMul", [hidden, d.recurrence]), d.bias)
    pi, po, pf = (d.gate(d.peepholes, k) if d.peepholes else "" for k in range(3))
    entering = d.activate(0, d.add(d.gate(sums, 0), d.mul(pi, cell) if pi else ""))
    if attribute(d.node, "input_forget", 0):
        forget = d.complement(entering)
    else:
        forget = d.activate(0, d.add(d.gate(sums, 2), d.mul(pf, cell) if pf else ""))
    candidate = d.activate(1, d.gate(sums, 3))
    cell = d.add(d.mul(forget, cell), d.mul(entering, candidate))
    leaving = d.activate(0, d.add(d.gate(sums, 1), d.mul(po, cell) if po else ""))
    return [d.mul(leaving, str(d.graph.emit(d.activations[2], [cell]))), cell]


def _gru_step(d: _Direction, x: str, states: list[str]) -> list[str]:
    [hidden] = states
    products = d.add(d.graph.emit("MatMul", [hidden, d.recurrence]), d.bias)
    update = d.activate(0, d.add(d.gate(x, 0), d.gate(products, 0)))
    reset = d.activate(0, d.add(d.gate(x, 1), d.gate(products, 1)))
    if attribute(d.node, "linear_before_reset", 0):
        recurrent = d.mul(reset, d.gate(products, 2))
    else:
        recurrent = str(d.graph.emit("MatMul", [d.mul(reset, hidden), d.gate(d.recurrence, 2)]))
        recurrent = d.add(recurrent, d.gate(d.bias, 2) if d.bias else "")
    candidate = d.activate(1, d.add(d.gate(x, 2), recurrent))
    return [d.add(d.mul(d.complement(update), candidate), d.mul(update, hidden))]


def _rnn_step(d: _Direction, x: str, states: list[str]) -> list[str]:
    return [d.activate(0, d.add(x, d.graph.emit("MatMul", [states[0], d.recurrence]), d.bias))]


_STEPS: dict[str, _Step] = {"LSTM": _lstm_step, "GRU": _gru_step, "RNN": _rnn_step}


@rewrite("LSTM", "GRU", "RNN")
def recurrent(graph: Specializer, node: onnx.NodeProto) -> list[str]:
    """All steps of all directions; the results are Y [steps, directions, batch, H] and the final states."""
    batch_first = bool(attribute(node, "layout", 0))
    x = build.transpose(graph, node.input[0], [1, 0, 2]) if batch_first else node.input[0]
    steps, batch, _ = graph.type(x).shape
    directions = graph.type(node.input[1]).shape[0]
    if steps * directions > MAX_STEPS:
        raise Refuse(f"{steps} steps in {directions} directions are too many to unroll")
    lengths = build.known(graph, node, 4)
    if lengths is not None and (lengths != steps).any():
        raise Refuse("sequences of different lengths are not supported")
    count = 2 if node.op_type == "LSTM" else 1
    sequences: list[str] = []
    finals: list[list[str]] = [[] for _ in range(count)]
    for index in range(directions):
        backwards = attribute(node, "direction", "forward") == "reverse" or index == 1
        direction = _direction(graph, node, x, index)
        states = [_initial(graph, node, 5 + k, index, batch, direction, batch_first) for k in range(count)]
        outputs = [""] * steps
        for step in reversed(range(steps)) if backwards else range(steps):
            row = build.reshape(
                graph,
                build.cut(graph, direction.inputs, 0, step, step + 1),
                [batch, _GATES[node.op_type] * direction.size],
            )
            states = _STEPS[node.op_type](direction, row, states)
            outputs[step] = build.reshape(graph, states[0], [1, 1, batch, direction.size])
        sequences.append(build.concat(graph, outputs, 0))
        for final, state in zip(finals, states, strict=True):
            final.append(build.reshape(graph, state, [1, batch, direction.size]))
    whole = build.concat(graph, sequences, 1)
    last = [build.concat(graph, final, 0) for final in finals]
    if batch_first:
        whole = build.transpose(graph, whole, [2, 0, 1, 3])
        last = [build.transpose(graph, state, [1, 0, 2]) for state in last]
    return [whole, *last][: len(node.output)]


def _direction(graph: Specializer, node: onnx.NodeProto, x: str, index: int) -> _Direction:
    def own(position: int) -> str:
        if position >= len(node.input) or not node.input[position]:
            return ""
        operand = build.cut(graph, node.input[position], 0, index, index + 1)
        return build.reshape(graph, operand, graph.type(operand).shape[1:])

    weights = build.transpose(graph, own(1), [1, 0])
    recurrence = build.transpose(graph, own(2), [1, 0])
    gates = graph.type(recurrence).shape[1]
    both = own(3)
    inputs = str(graph.emit("MatMul", [x, weights]))
    if both:
        inputs = str(graph.emit("Add", [inputs, build.cut(graph, both, 0, 0, gates)]))
    defaults = _DEFAULTS[node.op_type]
    named = attribute(node, "activations") or defaults * (index + 1)
    activations = named[index * len(defaults) : (index + 1) * len(defaults)]
    unknown = sorted(set(activations) - _ACTIVATIONS)
    if unknown or attribute(node, "activation_alpha") or attribute(node, "activation_beta"):
        raise Refuse(f"activations {', '.join(unknown) or 'with parameters'} are not supported")
    return _Direction(
        graph=graph,
        node=node,
        size=gates // _GATES[node.op_type],
        inputs=inputs,
        recurrence=recurrence,
        bias=build.cut(graph, both, 0, gates, 2 * gates) if both else "",
        peepholes=own(7) if node.op_type == "LSTM" else "",
        activations=activations,
    )


def _initial(
    graph: Specializer,
    node: onnx.NodeProto,
    position: int,
    index: int,
    batch: int,
    direction: _Direction,
    batch_first: bool,
) -> str:
    if position < len(node.input) and node.input[position]:
        state = build.cut(graph, node.input[position], 1 if batch_first else 0, index, index + 1)
        return build.reshape(graph, state, [batch, direction.size])
    return build.array_like(graph, np.zeros((batch, direction.size)), direction.inputs)
