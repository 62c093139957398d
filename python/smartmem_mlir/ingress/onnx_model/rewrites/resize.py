"""Resize as constant taps along each axis: every mode of it is a separable linear map with known coefficients.

torch-mlir takes about half of the modes. A nearest resize becomes a broadcast or a gather by a constant, both of which
are views; the others a few weighted gathers an axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import onnx

from smartmem_mlir.ingress.onnx_model.attributes import attribute
from smartmem_mlir.ingress.onnx_model.rewrites import build
from smartmem_mlir.ingress.onnx_model.rewrites.registry import Refuse, rewrite
from smartmem_mlir.ingress.onnx_model.tensors import Array

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer

MAX_GATHERED_TAPS = 8
"""Above this many taps (antialiased reductions) an axis is a product with a matrix."""


@dataclass(frozen=True)
class Axis:
    """The resize of one axis.

    Args:
        size: Elements before.
        result: Elements after.
        scale: The factor that coordinates use; not always `result / size`, which is rounded.
        roi: Start and end of the region for `tf_crop_and_resize`, in units of the axis.
    """

    size: int
    result: int
    scale: float
    roi: tuple[float, float] = (0.0, 1.0)

    def coordinates(self, mode: str) -> Array:
        """Where each result element lies among the source's, by coordinate_transformation_mode."""
        places = np.arange(self.result, dtype=np.float64)
        length = self.scale * self.size  # before rounding
        if mode == "half_pixel":
            return np.asarray((places + 0.5) / self.scale - 0.5)
        if mode == "pytorch_half_pixel":
            return np.asarray((places + 0.5) / self.scale - 0.5 if length != 1 else np.full(self.result, -0.5))
        if mode == "half_pixel_symmetric":
            offset = self.size / 2 * (1 - self.result / length)
            return np.asarray(offset + (places + 0.5) / self.scale - 0.5)
        if mode == "tf_half_pixel_for_nn":  # opsets 11 and 12
            return np.asarray((places + 0.5) / self.scale)
        if mode == "asymmetric":
            return np.asarray(places / self.scale)
        if mode == "align_corners":
            return np.asarray(places * (self.size - 1) / (length - 1) if length != 1 else np.zeros(self.result))
        if mode == "tf_crop_and_resize":
            start, end = self.roi
            if length == 1:
                return np.full(self.result, (start + end) / 2 * (self.size - 1))
            return np.asarray(start * (self.size - 1) + places * (end - start) * (self.size - 1) / (length - 1))
        raise Refuse(f"coordinate_transformation_mode {mode!r} is not supported")


@rewrite("Resize")
def resize(graph: Specializer, node: onnx.NodeProto) -> str:
    """One axis after the other."""
    value = node.input[0]
    mode = attribute(node, "coordinate_transformation_mode", "half_pixel")
    outside: list[tuple[int, Array]] = []
    for place, axis in _axes(graph, node):
        coordinates = axis.coordinates(mode)
        if mode == "tf_crop_and_resize":
            beyond = (coordinates < 0) | (coordinates > axis.size - 1)
            if beyond.any():
                outside.append((place, beyond))
        if attribute(node, "mode", "nearest") == "nearest":
            value = _nearest(graph, node, value, place, axis, coordinates)
        else:
            value = _weighted(graph, value, place, *_taps(node, axis, coordinates), axis.size)
    rank = graph.type(value).rank
    for place, beyond in outside:
        mask = graph.const(beyond.reshape([-1 if i == place else 1 for i in range(rank)]), np.bool_)
        fill = build.scalar(graph, attribute(node, "extrapolation_value", 0.0), value)
        value = graph.emit("Where", [mask, fill, value])
    return value


def _axes(graph: Specializer, node: onnx.NodeProto) -> list[tuple[int, Axis]]:
    """The axes that change, with their places."""
    before, after = graph.type(node.input[0]).shape, graph.type(node.output[0]).shape
    rank = len(before)
    roi, scales, sizes = (build.known(graph, node, i) for i in (1, 2, 3))
    axes = [a % rank for a in attribute(node, "axes", None) or range(rank)]
    if scales is None or scales.size == 0:
        if sizes is None:
            raise Refuse("it has neither scales nor sizes")
        scales = sizes / np.asarray([before[a] for a in axes])
        policy = attribute(node, "keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            scales = np.full(len(axes), scales.min() if policy == "not_larger" else scales.max())
    found = []
    for i, place in enumerate(axes):
        region = (float(roi[i]), float(roi[i + len(axes)])) if roi is not None and roi.size else (0.0, 1.0)
        axis = Axis(before[place], after[place], float(scales[i]), region)
        if axis.size != axis.result or axis.scale != 1 or region != (0.0, 1.0):
            found.append((place, axis))
    return found


def _nearest(graph: Specializer, node: onnx.NodeProto, value: str, place: int, axis: Axis, coordinates: Array) -> str:
    rounding = attribute(node, "nearest_mode", "round_prefer_floor")
    rounded = {
        "round_prefer_floor": np.ceil(coordinates - 0.5),
        "round_prefer_ceil": np.floor(coordinates + 0.5),
        "floor": np.floor(coordinates),
        "ceil": np.ceil(coordinates),
    }[rounding]
    indices = np.clip(rounded.astype(np.int64), 0, axis.size - 1)
    factor = axis.result // axis.size
    if factor * axis.size == axis.result and (indices == np.arange(axis.result) // factor).all():
        shape = graph.type(value).shape
        apart = build.reshape(graph, value, [*shape[: place + 1], 1, *shape[place + 1 :]])
        repeated = build.expand(graph, apart, [*shape[: place + 1], factor, *shape[place + 1 :]])
        return build.reshape(graph, repeated, [*shape[:place], axis.result, *shape[place + 1 :]])
    return build.take(graph, value, indices, place)


def _taps(node: onnx.NodeProto, axis: Axis, coordinates: Array) -> tuple[Array, Array]:
    """Source indices and weights, both [result, taps]."""
    cubic = attribute(node, "mode") == "cubic"
    shrink = min(axis.scale, 1.0) if attribute(node, "antialias", 0) else 1.0
    reach = (2 if cubic else 1) / shrink
    base = np.floor(coordinates).astype(np.int64)
    offsets = np.arange(-int(np.ceil(reach)) + 1, int(np.ceil(reach)) + 1)
    indices = base[:, None] + offsets[None, :]
    distance = np.abs(indices - coordinates[:, None]) * shrink
    weights = _cubic(distance, attribute(node, "cubic_coeff_a", -0.75)) if cubic else np.clip(1 - distance, 0, None)
    if attribute(node, "exclude_outside", 0):
        weights = np.where((indices >= 0) & (indices < axis.size), weights, 0)
    weights = weights / weights.sum(axis=1, keepdims=True)
    used = (weights != 0).any(axis=0)
    return np.clip(indices, 0, axis.size - 1)[:, used], weights[:, used]


def _cubic(distance: Array, a: float) -> Array:
    """Keys' cubic convolution kernel."""
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = a * (((distance - 5) * distance + 8) * distance - 4)
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))


def _weighted(graph: Specializer, value: str, place: int, indices: Array, weights: Array, size: int) -> str:
    rank = graph.type(value).rank
    results, taps = weights.shape
    if taps > MAX_GATHERED_TAPS:
        matrix = np.zeros((size, results))
        np.add.at(matrix, (indices, np.arange(results)[:, None]), weights)
        order = [i for i in range(rank) if i != place] + [place]
        rows = build.transpose(graph, value, order)
        product = graph.emit("MatMul", [rows, build.array_like(graph, matrix, value)])
        return build.transpose(graph, product, [order.index(i) for i in range(rank)])
    total = ""
    column = [-1 if i == place else 1 for i in range(rank)]
    for tap in range(taps):
        moved = build.take(graph, value, indices[:, tap], place)
        term = graph.emit("Mul", [moved, build.array_like(graph, weights[:, tap].reshape(column), value)])
        total = graph.emit("Add", [total, term]) if total else term
    return total
