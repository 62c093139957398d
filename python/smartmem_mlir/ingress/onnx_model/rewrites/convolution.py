"""Convolutions and transposed convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import onnx

from smartmem_mlir.ingress.onnx_model.attributes import attribute, without
from smartmem_mlir.ingress.onnx_model.rewrites import build
from smartmem_mlir.ingress.onnx_model.rewrites.registry import Refuse, rewrite
from smartmem_mlir.ingress.onnx_model.rewrites.windows import explicit_windows

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer


@rewrite("Conv")
def conv(graph: Specializer, node: onnx.NodeProto) -> Sequence[str] | str | None:
    """With explicit padding, and without an end that no window reads."""
    return explicit_windows(graph, node)


@rewrite("ConvTranspose")
def conv_transpose(graph: Specializer, node: onnx.NodeProto) -> str | None:
    """Groups as separate convolutions; padding that is not the same on both sides as a crop of the whole result.

    torch-mlir's grouped form does not verify, and it has no `auto_pad`, `output_shape` or uneven padding.
    """
    if attribute(node, "group", 1) > 1:
        return _split_groups(graph, node)
    shape = graph.type(node.output[0]).shape
    sizes = graph.type(node.input[0]).shape[2:]
    n = len(sizes)
    kernel = graph.type(node.input[1]).shape[2:]
    strides, dilations = attribute(node, "strides", [1] * n), attribute(node, "dilations", [1] * n)
    extra = attribute(node, "output_padding", [0] * n)
    pads = attribute(node, "pads", [0] * (2 * n))
    explicit = attribute(node, "auto_pad", "NOTSET") == "NOTSET" and not attribute(node, "output_shape")
    if explicit and pads[:n] == pads[n:] and not any(extra):
        return None
    whole = [strides[i] * (sizes[i] - 1) + dilations[i] * (kernel[i] - 1) + 1 for i in range(n)]
    if explicit:
        before = pads[:n]
    else:
        total = [whole[i] + extra[i] - shape[2 + i] for i in range(n)]
        upper = attribute(node, "auto_pad", "NOTSET") == "SAME_UPPER"
        before = [max(t, 0) // 2 if upper else max(t, 0) - max(t, 0) // 2 for t in total]
    kept = without(node, "auto_pad", "pads", "output_padding", "output_shape")
    value = graph.emit("ConvTranspose", [node.input[0], node.input[1]], **kept)
    for i in range(n):
        value = build.cut(graph, value, 2 + i, before[i], min(before[i] + shape[2 + i], whole[i]))
    missing = [shape[2 + i] - graph.type(value).shape[2 + i] for i in range(n)]
    if any(missing):
        value = graph.emit("Pad", [value, graph.const([0] * (n + 4) + missing), build.scalar(graph, 0, value)])
    if len(node.input) > 2 and node.input[2]:
        value = graph.emit("Add", [value, build.reshape(graph, node.input[2], [1, -1] + [1] * n)])
    return str(value)


def _split_groups(graph: Specializer, node: onnx.NodeProto) -> str:
    groups = attribute(node, "group")
    channels = graph.type(node.input[0]).shape[1] // groups
    results = graph.type(node.input[1]).shape[1]
    parts = []
    for g in range(groups):
        operands = [
            build.cut(graph, node.input[0], 1, g * channels, (g + 1) * channels),
            build.cut(graph, node.input[1], 0, g * channels, (g + 1) * channels),
        ]
        if len(node.input) > 2 and node.input[2]:
            operands.append(build.cut(graph, node.input[2], 0, g * results, (g + 1) * results))
        parts.append(graph.emit("ConvTranspose", operands, **without(node, "group")))
    return build.concat(graph, parts, 1)


@rewrite("Col2Im")
def col2im(graph: Specializer, node: onnx.NodeProto) -> str:
    """A transposed convolution whose kernel puts channel k of a block at the block's k-th place."""
    image, block = build.known(graph, node, 1), build.known(graph, node, 2)
    assert image is not None
    assert block is not None
    batch, columns, _ = graph.type(node.input[0]).shape
    n, places = block.size, prod(block.tolist())
    strides, dilations = attribute(node, "strides", [1] * n), attribute(node, "dilations", [1] * n)
    pads = attribute(node, "pads", [0] * (2 * n))
    spans = [int(image[i]) + pads[i] + pads[n + i] - (dilations[i] * (int(block[i]) - 1) + 1) for i in range(n)]
    counts = [span // stride + 1 for span, stride in zip(spans, strides, strict=True)]
    if prod(counts) != graph.type(node.input[0]).shape[2]:
        raise Refuse("its blocks do not cover the image")
    channels = columns // places
    blocks = build.reshape(graph, node.input[0], [batch * channels, places, *counts])
    kernel = build.array_like(graph, np.eye(places).reshape(places, 1, *block.tolist()), node.input[0])
    uncovered = [span % stride for span, stride in zip(spans, strides, strict=True)]
    value = graph.emit(
        "ConvTranspose",
        [blocks, kernel],
        strides=strides,
        dilations=dilations,
        pads=pads,
        output_padding=uncovered if any(uncovered) else None,
    )
    return build.reshape(graph, value, [batch, channels, *image.tolist()])
