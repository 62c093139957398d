"""Sampling at computed places."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING

import onnx
from onnx import TensorProto

from smartmem_mlir.ingress.onnx_model.attributes import attribute
from smartmem_mlir.ingress.onnx_model.rewrites import build
from smartmem_mlir.ingress.onnx_model.rewrites.registry import rewrite

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer

_CUBIC_A = -0.75


class _Emitter:
    """Elementwise arithmetic with constants, on values of one float type."""

    def __init__(self, graph: Specializer, like: str) -> None:
        self.graph = graph
        self.like = like

    def __call__(self, operator: str, *operands: str | float) -> str:
        names = [o if isinstance(o, str) else build.scalar(self.graph, o, self.like) for o in operands]
        return str(self.graph.emit(operator, names))


@rewrite("GridSample")
def grid_sample(graph: Specializer, node: onnx.NodeProto) -> str:
    """Taps gathered at computed indices and weighted; torch-mlir lacks most modes and rounds ties the wrong way."""
    value, grid = node.input
    shape, places = graph.type(value).shape, graph.type(grid).shape
    batch, channels, *sizes = shape
    results = list(places[1:-1])
    mode = attribute(node, "mode", "linear")
    emit = _Emitter(graph, grid)
    aligned = bool(attribute(node, "align_corners", 0))
    padding = attribute(node, "padding_mode", "zeros")
    flat = build.reshape(graph, grid, [batch, prod(results), len(sizes)])
    axes = []
    for i, size in enumerate(sizes):
        # The grid's last dimension goes from the innermost axis (x) to the outermost.
        column = build.reshape(graph, build.take(graph, flat, [len(sizes) - 1 - i], 2), [batch, prod(results)])
        place = emit("Add", column, 1.0)
        place = emit("Mul", place, (size - 1) / 2) if aligned else emit("Sub", emit("Mul", place, size / 2), 0.5)
        if mode != "cubic":
            place = _fold(emit, place, size, padding, aligned)
        axes.append(_axis_taps(emit, place, mode))
    source = build.reshape(graph, value, [batch, channels, prod(sizes)])
    total = ""
    for taps in product(*axes):
        sample = _fetch(emit, source, [index for index, _ in taps], sizes, padding, aligned)
        for _, weight in taps:
            if weight:
                row = build.cast(graph, weight, graph.type(value).element_type)
                sample = graph.emit("Mul", [sample, build.reshape(graph, row, [batch, 1, prod(results)])])
        total = graph.emit("Add", [total, sample]) if total else sample
    return build.reshape(graph, total, [batch, channels, *results])


def _fold(emit: _Emitter, place: str, size: int, padding: str, aligned: bool) -> str:
    """Bring coordinates into the input as the padding mode says; zeros are handled where the input is read."""
    if padding == "border":
        return emit("Max", emit("Min", place, float(size - 1)), 0.0)
    if padding == "reflection":
        low, high = (0.0, size - 1.0) if aligned else (-0.5, size - 0.5)
        span = max(high - low, 1e-6)
        # A triangle wave of period 2 * span.
        turned = emit("Abs", emit("Sub", place, low))
        period = emit("Floor", emit("Div", turned, 2 * span))
        within = emit("Sub", turned, emit("Mul", period, 2 * span))
        return emit("Add", emit("Min", within, emit("Sub", 2 * span, within)), low)
    return place


def _axis_taps(emit: _Emitter, place: str, mode: str) -> list[tuple[str, str]]:
    """Integer-valued places and their weights along one axis; an empty weight is one."""
    if mode == "nearest":
        return [(emit("Round", place), "")]
    base = emit("Floor", place)
    fraction = emit("Sub", place, base)
    if mode == "linear":
        return [(base, emit("Sub", 1.0, fraction)), (emit("Add", base, 1.0), fraction)]
    return [(emit("Add", base, float(k)), _cubic(emit, fraction, k)) for k in (-1, 0, 1, 2)]


def _cubic(emit: _Emitter, fraction: str, tap: int) -> str:
    """Keys' cubic convolution kernel at the distance of a tap."""
    a = _CUBIC_A
    d = emit("Sub", fraction, float(tap)) if tap <= 0 else emit("Sub", float(tap), fraction)
    if tap in (0, 1):
        inner = emit("Sub", emit("Mul", d, a + 2), a + 3)
        return emit("Add", emit("Mul", inner, emit("Mul", d, d)), 1.0)
    inner = emit("Add", emit("Mul", emit("Sub", d, 5.0), d), 8.0)
    return emit("Mul", emit("Sub", emit("Mul", inner, d), 4.0), a)


def _fetch(emit: _Emitter, source: str, indices: list[str], sizes: list[int], padding: str, aligned: bool) -> str:
    """Read `source` [batch, channels, elements] at integer-valued places, padded as asked."""
    graph = emit.graph
    batch, channels, _ = graph.type(source).shape
    position, valid = "", ""
    for index, size in zip(indices, sizes, strict=True):
        if padding == "zeros":
            inside = graph.emit("And", [emit("Greater", index, -0.5), emit("Less", index, size - 0.5)])
            valid = graph.emit("And", [valid, inside]) if valid else inside
        else:
            index = _fold(emit, index, size, padding, aligned)
        whole = build.cast(graph, emit("Max", emit("Min", index, size - 1.0), 0.0), TensorProto.INT64)
        position = graph.emit("Add", [graph.emit("Mul", [position, graph.const(size)]), whole]) if position else whole
    count = graph.type(position).shape[1]
    position = build.expand(graph, build.reshape(graph, position, [batch, 1, count]), [batch, channels, count])
    sample = graph.emit("GatherElements", [source, position], axis=2)
    if not valid:
        return str(sample)
    mask = build.reshape(graph, valid, [batch, 1, count])
    return str(graph.emit("Where", [mask, sample, build.scalar(graph, 0.0, source)]))
