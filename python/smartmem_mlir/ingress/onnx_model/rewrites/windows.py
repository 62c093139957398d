"""Sliding windows: what they read, and what they leave unread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import onnx

from smartmem_mlir.ingress.onnx_model.attributes import attribute, without
from smartmem_mlir.ingress.onnx_model.rewrites import build
from smartmem_mlir.ingress.onnx_model.rewrites.registry import Refuse
from smartmem_mlir.ingress.onnx_model.tensors import Array

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer


@dataclass(frozen=True)
class Axis:
    """One dimension that windows slide along: sizes in elements."""

    size: int
    result: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def overhang(self) -> int:
        """Elements that the last window reads beyond the input and its padding; negative if it leaves some unread."""
        reach = (self.result - 1) * self.stride + self.dilation * (self.kernel - 1) + 1
        return reach - self.before - self.size - self.after

    def counts(self, *, padding: bool) -> Array:
        """How many elements of each window lie in the input (or in the declared padding, if that counts too)."""
        low, high = (-self.before, self.size + self.after) if padding else (0, self.size)
        starts = np.arange(self.result) * self.stride - self.before
        places = starts[:, None] + self.dilation * np.arange(self.kernel)[None, :]
        return np.asarray(((places >= low) & (places < high)).sum(axis=1))


def window_axes(graph: Specializer, node: onnx.NodeProto) -> list[Axis]:
    """The dimensions of a pool or convolution, automatic padding made explicit."""
    sizes, results = graph.type(node.input[0]).shape[2:], graph.type(node.output[0]).shape[2:]
    n = len(sizes)
    kernel = graph.type(node.input[1]).shape[2:] if node.op_type == "Conv" else attribute(node, "kernel_shape")
    strides, dilations = attribute(node, "strides", [1] * n), attribute(node, "dilations", [1] * n)
    mode = attribute(node, "auto_pad", "NOTSET")
    pads = attribute(node, "pads", [0] * (2 * n)) if mode == "NOTSET" else [0] * (2 * n)
    axes = []
    for i in range(n):
        before, after = pads[i], pads[i + n]
        if mode.startswith("SAME"):
            reach = (results[i] - 1) * strides[i] + dilations[i] * (kernel[i] - 1) + 1
            total = max(reach - sizes[i], 0)
            before = total // 2 if mode == "SAME_UPPER" else total - total // 2
            after = total - before
        axes.append(Axis(sizes[i], results[i], kernel[i], strides[i], dilations[i], before, after))
    return axes


def explicit_windows(graph: Specializer, node: onnx.NodeProto) -> Sequence[str] | str | None:
    """A pool or convolution in a form that torch-mlir and IREE 3.13 compile.

    - Automatic padding becomes explicit.
    - The end that a single window leaves unread is cut off: IREE takes a dimension with one result and such an end for
      one of the window's own size, and fails.
    - A maximum with uneven padding is padded beforehand: torch-mlir pads it with an f64 that IREE does not convert.

    Returns:
        What replaces the node, or None if it is in such a form.
    """
    axes = window_axes(graph, node)
    value = node.input[0]
    after = []
    for i, axis in enumerate(axes):
        unread = -axis.overhang if axis.result == 1 and axis.overhang < 0 else 0
        padding = min(axis.after, unread)
        after.append(axis.after - padding)
        value = build.cut(graph, value, 2 + i, 0, axis.size - (unread - padding))
    before = [axis.before for axis in axes]
    uneven = node.op_type == "MaxPool" and before != after
    automatic = attribute(node, "auto_pad", "NOTSET") != "NOTSET"
    if not uneven and not automatic and value == node.input[0] and after == [axis.after for axis in axes]:
        return None
    if any(node.output[1:]) and (uneven or value != node.input[0]):
        raise Refuse("indices of windows with uneven padding or an unread end are not supported")
    if uneven:
        fill = build.scalar(graph, -np.inf, value)
        value = graph.emit("Pad", [value, graph.const([0, 0, *before, 0, 0, *after]), fill])
        before = after = [0] * len(axes)
    kept = without(node, "auto_pad", "pads", "ceil_mode")
    kept |= {"ceil_mode": 1} if any(axis.overhang > 0 for axis in axes) else {}
    operands = [value, *node.input[1:]]
    result: Sequence[str] | str = graph.emit(
        node.op_type, operands, outputs=len(node.output), pads=[*before, *after], **kept
    )
    return result
