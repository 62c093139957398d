"""Scatters as gathers: each result element looks for the updates that land on it.

torch-mlir scatters with an operation of its own that neither MLIR nor IREE knows. Here data and updates are brought
into the form `data [batch, rows, n]`, `updates [batch, count, n]`, `targets [batch, count]`: update u of a batch lands
on row `targets[u]`. With constant targets that is one gather by a constant per layer of updates; with computed ones
every row is compared with every target.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import onnx

from smartmem_mlir.ingress.onnx_model.attributes import attribute
from smartmem_mlir.ingress.onnx_model.rewrites import build
from smartmem_mlir.ingress.onnx_model.rewrites.registry import Refuse, rewrite
from smartmem_mlir.ingress.onnx_model.tensors import Array

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer

MAX_LAYERS = 32
"""Constant targets: updates of one row that are combined one after the other; more are refused."""

MAX_COMPARISONS = 1 << 26
"""Computed targets: rows times updates times elements of a row; more are refused."""


@dataclass(frozen=True)
class Reduction:
    """How an update meets the data: the operator, the reduction of several updates, and what changes nothing."""

    operator: str
    reducer: str
    neutral: float


REDUCTIONS = {
    "add": Reduction("Add", "ReduceSum", 0),
    "mul": Reduction("Mul", "ReduceProd", 1),
    "max": Reduction("Max", "ReduceMax", -np.inf),
    "min": Reduction("Min", "ReduceMin", np.inf),
}


@rewrite("ScatterND")
def scatter_nd(graph: Specializer, node: onnx.NodeProto) -> str:
    """Slices at index tuples."""
    data, indices, updates = node.input
    indices = _inline(graph, indices)
    shape, places = graph.type(data).shape, graph.type(indices).shape
    depth = places[-1]
    rows, count = prod(shape[:depth]), prod(places[:-1])
    targets = _flat(graph, build.reshape(graph, indices, [count, depth]), shape[:depth])
    return _scatter(graph, node, data, updates, targets, (1, rows, prod(shape[depth:])))


@rewrite("ScatterElements")
def scatter_elements(graph: Specializer, node: onnx.NodeProto) -> str:
    """Elements along one axis: rows of one element, each position of the other axes a batch of its own."""
    data, indices, updates = node.input
    indices = _inline(graph, indices)
    shape, places = graph.type(data).shape, graph.type(indices).shape
    axis = attribute(node, "axis", 0) % len(shape)
    order = [i for i in range(len(shape)) if i != axis] + [axis]
    if any(shape[i] != places[i] for i in order[:-1]):
        # Positions beyond the indices' get no update: cut them off and put them back.
        inner = data
        for i in order[:-1]:
            inner = build.cut(graph, inner, i, 0, places[i])
        value = str(graph.emit("ScatterElements", [inner, indices, updates], axis=axis, reduction=_mode(node)))
        for i in reversed(order[:-1]):
            if shape[i] != places[i]:
                rest = data
                for j in order[:-1]:
                    limit = shape[j] if j >= i else places[j]
                    rest = build.cut(graph, rest, j, places[i] if j == i else 0, limit)
                value = build.concat(graph, [value, rest], i)
        return value
    batch = prod(shape[i] for i in order[:-1])
    rows = build.transpose(graph, data, order)
    moved = build.transpose(graph, updates, order)
    targets = build.reshape(graph, build.transpose(graph, indices, order), [batch, places[axis], 1])
    targets = _flat(graph, targets, (shape[axis],))
    result = _scatter(graph, node, rows, moved, targets, (batch, shape[axis], 1))
    return build.transpose(graph, result, [order.index(i) for i in range(len(shape))])


def _inline(graph: Specializer, indices: str) -> str:
    """Indices that are a weight by their size as a constant, so that they are known here."""
    weight = graph.weight(indices)
    return indices if weight is None else graph.const(weight.load())


def _mode(node: onnx.NodeProto) -> str | None:
    mode = attribute(node, "reduction", "none")
    return None if mode == "none" else str(mode)


def _flat(graph: Specializer, indices: str, shape: tuple[int, ...]) -> str:
    """Row-major positions of index tuples (the last dimension); negative indices count from the end."""
    size = np.asarray(shape, dtype=np.int64)
    strides = np.asarray([prod(shape[i + 1 :]) for i in range(len(shape))], dtype=np.int64)
    wide = build.cast(graph, indices, onnx.TensorProto.INT64)
    negative = graph.emit("Less", [wide, graph.const(0)])
    wrapped = graph.emit("Where", [negative, graph.emit("Add", [wide, graph.const(size)]), wide])
    scaled = graph.emit("Mul", [wrapped, graph.const(strides)])
    return build.reduce(graph, "ReduceSum", scaled, [graph.type(scaled).rank - 1])


def _scatter(
    graph: Specializer, node: onnx.NodeProto, data: str, updates: str, targets: str, form: tuple[int, int, int]
) -> str:
    """Scatter in the module's common form `[batch, rows, n]`, back in the data's shape."""
    shape = graph.type(data).shape
    batch, rows, length = form
    count = graph.type(targets).elements // max(batch, 1)
    base = build.reshape(graph, data, [batch, rows, length])
    values = build.reshape(graph, updates, [batch, count, length])
    known = graph.constant(targets)
    if known is not None:
        result = _constant_targets(graph, base, values, known.reshape(batch, count), _mode(node))
    else:
        result = _computed_targets(graph, base, values, build.reshape(graph, targets, [batch, 1, count]), _mode(node))
    return build.reshape(graph, result, shape)


def _constant_targets(graph: Specializer, data: str, values: str, targets: Array, mode: str | None) -> str:
    batch, rows, length = graph.type(data).shape
    count = targets.shape[1]
    if ((targets < 0) | (targets >= rows)).any():
        raise Refuse("an index is out of range")
    # One axis of rows for all batches, so that a single gather serves them.
    everywhere = (targets + rows * np.arange(batch)[:, None]).reshape(-1)
    data = build.reshape(graph, data, [batch * rows, length])
    values = build.reshape(graph, values, [batch * count, length])
    for sources in _layers(everywhere, batch * rows, last_only=mode is None):
        moved = build.take(graph, values, np.maximum(sources, 0), 0)
        combined = graph.emit(REDUCTIONS[mode].operator, [data, moved]) if mode else moved
        hit = graph.const((sources >= 0).reshape(-1, 1), np.bool_)
        data = combined if (sources >= 0).all() else graph.emit("Where", [hit, combined, data])
    return data


def _layers(targets: Array, rows: int, *, last_only: bool) -> list[Array]:
    """For each layer, the update that each row takes, or -1; no layer gives a row two updates."""
    if last_only:
        single = np.full(rows, -1, dtype=np.int64)
        single[targets] = np.arange(len(targets))
        return [single]
    layers: list[Array] = []
    filled = np.zeros(rows, dtype=np.int64)
    for update, row in enumerate(targets):
        if filled[row] == len(layers):
            if len(layers) == MAX_LAYERS:
                raise Refuse(f"more than {MAX_LAYERS} updates land on one element")
            layers.append(np.full(rows, -1, dtype=np.int64))
        layers[filled[row]][row] = update
        filled[row] += 1
    return layers


def _computed_targets(graph: Specializer, data: str, values: str, targets: str, mode: str | None) -> str:
    batch, rows, length = graph.type(data).shape
    count = graph.type(values).shape[1]
    if batch * rows * count * length > MAX_COMPARISONS:
        raise Refuse("its indices are only known when the model runs, and there are too many to compare")
    hit = graph.emit("Equal", [targets, graph.const(np.arange(rows).reshape(1, rows, 1))])
    hit = build.reshape(graph, hit, [batch, rows, count, 1])
    updates = build.reshape(graph, values, [batch, 1, count, length])
    if mode is not None:
        reduction = REDUCTIONS[mode]
        neutral = build.scalar(graph, reduction.neutral, data)
        chosen = graph.emit("Where", [hit, updates, neutral])
        return str(graph.emit(reduction.operator, [data, build.reduce(graph, reduction.reducer, chosen, [2])]))
    # Without a reduction the last update of a row wins.
    order = graph.const(np.arange(1, count + 1).reshape(1, 1, count, 1))
    last = build.reduce(graph, "ReduceMax", graph.emit("Where", [hit, order, graph.const(0)]), [2], keepdims=True)
    winner = graph.emit("Equal", [last, order])
    chosen = graph.emit("Where", [winner, updates, build.scalar(graph, 0, data)])
    landed = build.reshape(graph, graph.emit("Greater", [last, graph.const(0)]), [batch, rows, 1])
    return str(graph.emit("Where", [landed, build.reduce(graph, "ReduceSum", chosen, [2]), data]))
