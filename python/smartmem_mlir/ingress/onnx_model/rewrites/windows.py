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
    """The dimensions of a pool or convolution with explicit padding."""
    sizes, results = graph.type(node.input[0]).shape[2:], graph.type(node.output[0]).shape[2:]
    n = len(sizes)
    pads = attribute(node, "pads", [0] * (2 * n))
    kernel = graph.type(node.input[1]).shape[2:] if node.op_type == "Conv" else attribute(node, "kernel_shape")
    strides, dilations = attribute(node, "strides", [1] * n), attribute(node, "dilations", [1] * n)
    return [Axis(sizes[i], results[i], kernel[i], strides[i], dilations[i], pads[i], pads[i + n]) for i in range(n)]


def trim_unread(graph: Specializer, node: onnx.NodeProto) -> Sequence[str] | str | None:
    """Cut off the end that a single window leaves unread.

    IREE 3.13 does not compile windows with one result along a dimension whose input they do not read to the end: it
    takes the dimension for one of the window's own size. Cropping changes nothing else.

    Returns:
        What replaces the node, or None if there is no such dimension.
    """
    if attribute(node, "auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return None
    axes = window_axes(graph, node)
    if all(axis.result != 1 or axis.overhang >= 0 for axis in axes):
        return None
    value = node.input[0]
    after = []
    for i, axis in enumerate(axes):
        unread = -axis.overhang if axis.result == 1 and axis.overhang < 0 else 0
        padding = min(axis.after, unread)
        after.append(axis.after - padding)
        if unread > padding:
            if any(node.output[1:]):
                raise Refuse("indices into an input that is not read to its end are not supported")
            value = build.cut(graph, value, 2 + i, 0, axis.size - (unread - padding))
    kept = without(node, "auto_pad", "pads", "ceil_mode")
    pads = [*(axis.before for axis in axes), *after]
    operands = [value, *node.input[1:]]
    result: Sequence[str] | str = graph.emit(node.op_type, operands, outputs=len(node.output), pads=pads, **kept)
    return result
