"""Fourier transforms as matrix products with constant cosines and sines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx

from smartmem_mlir.ingress.onnx_model.attributes import attribute
from smartmem_mlir.ingress.onnx_model.rewrites import build
from smartmem_mlir.ingress.onnx_model.rewrites.registry import Refuse, rewrite

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer

MAX_LENGTH = 4096
"""Longer transforms need a fast algorithm, which a product with a matrix is not."""


@rewrite("DFT")
def dft(graph: Specializer, node: onnx.NodeProto) -> str:
    """`[..., n, re/im]` times a matrix of cosines and sines along the transformed axis."""
    value = node.input[0]
    rank = graph.type(value).rank
    given = build.known(graph, node, 2)
    axis = (int(given.item()) if given is not None else -2) % rank
    length = build.known(graph, node, 1)
    size = graph.type(value).shape[axis]
    n = int(length.item()) if length is not None else size
    inverse, onesided = bool(attribute(node, "inverse", 0)), bool(attribute(node, "onesided", 0))
    moved = [i for i in range(rank - 1) if i != axis] + [rank - 1, axis]
    rows = build.cut(graph, build.transpose(graph, value, moved), rank - 1, 0, min(n, size))
    if inverse and onesided:
        result = _real_inverse(graph, rows, n if length is not None else 2 * (size - 1))
    else:
        result = transform(graph, rows, n, inverse=inverse, onesided=onesided)
    return build.transpose(graph, result, [moved.index(i) for i in range(rank)])


def transform(graph: Specializer, rows: str, n: int, *, inverse: bool, onesided: bool) -> str:
    """The transform of length n of `[..., 1 or 2, up to n samples]`, as `[..., 2, frequencies]`."""
    if n > MAX_LENGTH:
        raise Refuse(f"a transform of length {n} is too long")
    shape = graph.type(rows).shape
    samples, frequencies = shape[-1], n // 2 + 1 if onesided else n
    angles = 2 * np.pi * np.outer(np.arange(samples), np.arange(frequencies)) / n
    cosine, sine = np.cos(angles), np.sin(angles) * (1 if inverse else -1)
    if inverse:
        cosine, sine = cosine / n, sine / n
    # [re, im] as one row of 2 * samples; a real signal has only the first half.
    matrix = np.block([[cosine, sine], [-sine, cosine]])[: shape[-2] * samples]
    flat = build.reshape(graph, rows, [*shape[:-2], shape[-2] * samples])
    product = graph.emit("MatMul", [flat, build.array_like(graph, matrix, rows)])
    return build.reshape(graph, product, [*shape[:-2], 2, frequencies])


def _real_inverse(graph: Specializer, rows: str, n: int) -> str:
    """The real signal of length n of a one-sided spectrum `[..., 2, frequencies]`, as `[..., 1, n]`.

    The frequencies that the spectrum leaves out are the conjugates of those it has, except of the first and, for an
    even n, of the middle one.
    """
    if n > MAX_LENGTH:
        raise Refuse(f"a transform of length {n} is too long")
    shape = graph.type(rows).shape
    used = min(shape[-1], n // 2 + 1)
    rows = build.cut(graph, rows, len(shape) - 1, 0, used)
    frequencies = np.arange(used)
    twice = np.where((frequencies == 0) | (2 * frequencies == n), 1, 2)[:, None] / n
    angles = 2 * np.pi * np.outer(frequencies, np.arange(n)) / n
    matrix = np.concatenate([twice * np.cos(angles), -twice * np.sin(angles)])
    flat = build.reshape(graph, rows, [*shape[:-2], 2 * used])
    product = graph.emit("MatMul", [flat, build.array_like(graph, matrix, rows)])
    return build.reshape(graph, product, [*shape[:-2], 1, n])


@rewrite("STFT")
def stft(graph: Specializer, node: onnx.NodeProto) -> str:
    """Frames by a gather of constant places, times the window, transformed."""
    value = node.input[0]
    batch, samples, *parts = graph.type(value).shape
    step = build.known(graph, node, 1)
    assert step is not None
    frame = build.known(graph, node, 3)
    window = node.input[2] if len(node.input) > 2 and node.input[2] else ""
    if frame is None and not window:
        raise Refuse("it has neither a frame length nor a window")
    size = int(frame.item()) if frame is not None else graph.type(window).shape[0]
    starts = np.arange(0, samples - size + 1, int(step.item()))
    signal = build.reshape(graph, value, [batch, samples, parts[0] if parts else 1])
    frames = build.take(graph, signal, starts[:, None] + np.arange(size)[None, :], 1)
    frames = build.transpose(graph, frames, [0, 1, 3, 2])
    if window:
        frames = graph.emit("Mul", [frames, window])
    result = transform(graph, frames, size, inverse=False, onesided=bool(attribute(node, "onesided", 1)))
    return build.transpose(graph, result, [0, 1, 3, 2])
