"""Pads, windows and block rearrangements, as views. See `movement.py` for the conventions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.compose import compose
from smartmem_mlir.index_maps.errors import IndexMapError, PieceLimitExceeded
from smartmem_mlir.index_maps.expr import Expr, dim
from smartmem_mlir.index_maps.movement import Shape, reshape, slice_, transpose
from smartmem_mlir.index_maps.preimage import MAX_PIECES
from smartmem_mlir.index_maps.view import Fill, Piece, Scalar, View

PadMode = Literal["constant", "edge", "reflect", "symmetric", "wrap"]
Segment = tuple[int, int, Expr | None]
"""Positions `[lo, hi)` of a padded axis and the operand's index there; None for the fill."""


def pad(
    shape: Shape,
    low: Sequence[int],
    high: Sequence[int],
    mode: PadMode = "constant",
    value: Scalar = 0.0,
) -> View:
    """Extends each axis by `low[i]` and `high[i]` elements, with np.pad's modes.

    Negative amounts crop (as in ONNX and PyTorch), before anything is padded.

    Raises:
        IndexMapError: An empty axis is padded in a mode that needs an element, or more is cropped than there is.
        PieceLimitExceeded: Reflection back and forth over many axes.
    """
    if not len(shape) == len(low) == len(high):
        raise IndexMapError(f"pad amounts of rank {len(low)} for rank {len(shape)}")
    starts = [max(0, -amount) for amount in low]
    sizes = [e - s - max(0, -h) for e, s, h in zip(shape, starts, high, strict=True)]
    if any(size < 0 for size in sizes):
        raise IndexMapError(f"cannot crop {list(low)} and {list(high)} from {list(shape)}")
    cropped = slice_(shape, starts, sizes)
    amounts = [(max(0, a), max(0, b)) for a, b in zip(low, high, strict=True)]
    result = Box.of([size + a + b for size, (a, b) in zip(sizes, amounts, strict=True)])
    if mode != "constant" and any(n == 0 and a + b for n, (a, b) in zip(sizes, amounts, strict=True)):
        raise IndexMapError(f"mode {mode!r} cannot pad an empty axis of {sizes}")
    axes = [_pad_axis(axis, n, a, b, mode) for axis, (n, (a, b)) in enumerate(zip(sizes, amounts, strict=True))]
    pieces: list[Piece] = []
    _pad_pieces(axes, (), Fill(value), result, pieces)
    return compose(View.of(result.hi, [sizes], pieces), cropped)


def _pad_pieces(
    axes: Sequence[Sequence[Segment]], chosen: tuple[Segment, ...], fill: Fill, result: Box, pieces: list[Piece]
) -> None:
    """The product of the segments; a fill segment keeps the remaining axes whole, so slabs stay few and large."""
    axis = len(chosen)
    done = axis == len(axes)
    if done or (chosen and chosen[-1][2] is None):
        rest = range(axis, len(axes))
        box = Box(tuple(s[0] for s in chosen) + (0,) * len(rest), tuple(s[1] for s in chosen) + result.hi[axis:])
        exprs = [s[2] for s in chosen]
        known = tuple(e for e in exprs if e is not None)
        pieces.append(Piece(box, 0, known) if len(known) == len(axes) else Piece(box, fill, ()))
        if len(pieces) > MAX_PIECES:
            raise PieceLimitExceeded(f"pad needs more than {MAX_PIECES} pieces")
        return
    for segment in axes[axis]:
        if segment[0] < segment[1]:
            _pad_pieces(axes, (*chosen, segment), fill, result, pieces)


def _pad_axis(axis: int, n: int, low: int, high: int, mode: PadMode) -> list[Segment]:
    d, end = dim(axis), low + n + high
    if mode == "wrap" and n:
        return [(0, end, (d - low) % n)]
    if mode == "constant" or not low + high:
        return [(0, low, None), (low, low + n, d - low), (low + n, end, None)]
    if mode == "edge" or (mode == "reflect" and n == 1):
        return [(0, low, d * 0), (low, low + n, d - low), (low + n, end, d * 0 + (n - 1))]
    if mode not in ("reflect", "symmetric"):
        raise IndexMapError(f"pad mode {mode!r} is unknown")
    # The axis unrolled is a zigzag: pass k covers positions [k*span, (k+1)*span), odd passes run backwards.
    span = n - 1 if mode == "reflect" else n
    segments: list[Segment] = []
    for k in range(-low // span, -(-(n + high) // span)):
        first, last = max(k * span, -low), min((k + 1) * span, n + high)
        position = d - low - k * span
        segments.append((first + low, last + low, position if k % 2 == 0 else n - 1 - position))
    if mode == "reflect" and segments:
        # Where a backward pass starts, the forward one reaches just as well: [0, n) stays one segment.
        segments = _with_whole_axis(segments, low, n, d)
    if len(segments) > MAX_PIECES:
        raise PieceLimitExceeded(f"reflecting an axis of {n} into {end} needs {len(segments)} pieces")
    return segments


def _with_whole_axis(segments: list[Segment], low: int, n: int, d: Expr) -> list[Segment]:
    whole: Segment = (low, low + n, d - low)
    before = [s for s in segments if s[0] < low]
    after = [(max(s[0], low + n), s[1], s[2]) for s in segments if s[1] > low + n]
    return [*before, whole, *after]


def im2col(
    shape: Shape,
    kernel: tuple[int, int],
    strides: tuple[int, int] = (1, 1),
    dilations: tuple[int, int] = (1, 1),
    low: tuple[int, int] = (0, 0),
    high: tuple[int, int] = (0, 0),
    value: Scalar = 0.0,
) -> View:
    """Patches of an NCHW tensor: [N, C, H, W] -> [N, C, KH, KW, OH, OW], every index kept apart.

    Element (n, c, kh, kw, oh, ow) is the padded input at (n, c, oh*stride + kh*dilation, ...).
    """
    if len(shape) != 4:
        raise IndexMapError(f"im2col of rank {len(shape)}, expected [N, C, H, W]")
    padded = pad(shape, (0, 0, *low), (0, 0, *high), "constant", value)
    out = []
    for axis in range(2):
        room = padded.shape[2 + axis] - dilations[axis] * (kernel[axis] - 1) - 1
        if room < 0 or min(kernel[axis], strides[axis], dilations[axis]) < 1:
            raise IndexMapError(f"kernel {kernel} with dilations {dilations} on a padded {list(padded.shape)}")
        out.append(room // strides[axis] + 1)
    rows = dim(4) * strides[0] + dim(2) * dilations[0]
    columns = dim(5) * strides[1] + dim(3) * dilations[1]
    patches = View.mapped((*shape[:2], *kernel, *out), padded.shape, (dim(0), dim(1), rows, columns))
    return compose(patches, padded)


def unfold(
    shape: Shape,
    kernel: tuple[int, int],
    strides: tuple[int, int] = (1, 1),
    dilations: tuple[int, int] = (1, 1),
    padding: tuple[int, int] = (0, 0),
) -> View:
    """torch.nn.Unfold: [N, C, H, W] -> [N, C*KH*KW, OH*OW].

    Raises:
        PieceLimitExceeded: With padding, the border falls into stripes of the collapsed axes; `im2col` stays small.
    """
    patches = im2col(shape, kernel, strides, dilations, padding, padding)
    n, c, kh, kw, oh, ow = patches.shape
    return compose(reshape(patches.shape, (n, c * kh * kw, oh * ow)), patches)


def depth_to_space(shape: Shape, block: int, mode: Literal["DCR", "CRD"] = "DCR") -> View:
    """ONNX DepthToSpace on [N, C, H, W]: channels become blocks of block x block pixels.

    DCR: channel = (row in block, column in block, depth); CRD: channel = (depth, row, column), which is
    torch.pixel_shuffle.
    """
    n, c, h, w = _blocks(shape, block, mode)
    if c % (block * block):
        raise IndexMapError(f"{c} channels are not a multiple of {block}*{block}")
    depth = c // (block * block)
    if mode == "DCR":
        split_shape, axes = (n, block, block, depth, h, w), (0, 3, 4, 1, 5, 2)
    else:
        split_shape, axes = (n, depth, block, block, h, w), (0, 1, 4, 2, 5, 3)
    return _rearranged(shape, split_shape, axes, (n, depth, h * block, w * block))


def space_to_depth(shape: Shape, block: int, mode: Literal["DCR", "CRD"] = "DCR") -> View:
    """The inverse of `depth_to_space` in the same mode. ONNX SpaceToDepth is DCR; CRD is torch.pixel_unshuffle."""
    n, c, h, w = _blocks(shape, block, mode)
    if h % block or w % block:
        raise IndexMapError(f"{h}x{w} pixels are not a multiple of the block {block}")
    split_shape = (n, c, h // block, block, w // block, block)
    axes = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return _rearranged(shape, split_shape, axes, (n, c * block * block, h // block, w // block))


def pixel_shuffle(shape: Shape, factor: int) -> View:
    """torch.pixel_shuffle on [N, C*r*r, H, W]."""
    return depth_to_space(shape, factor, "CRD")


def pixel_unshuffle(shape: Shape, factor: int) -> View:
    """torch.pixel_unshuffle on [N, C, H*r, W*r]."""
    return space_to_depth(shape, factor, "CRD")


def window_partition(shape: Shape, window: tuple[int, int]) -> View:
    """Swin windows: [B, H, W, C] -> [B * H/wh * W/ww, wh * ww, C]."""
    b, h, w, c = _image(shape, window)
    wh, ww = window
    split_shape = (b, h // wh, wh, w // ww, ww, c)
    return _rearranged(shape, split_shape, (0, 1, 3, 2, 4, 5), (b * (h // wh) * (w // ww), wh * ww, c))


def window_reverse(image_shape: Shape, window: tuple[int, int]) -> View:
    """The inverse of `window_partition`: windows back to an image of shape `image_shape` = [B, H, W, C]."""
    b, h, w, c = _image(image_shape, window)
    wh, ww = window
    windows = (b * (h // wh) * (w // ww), wh * ww, c)
    return _rearranged(windows, (b, h // wh, w // ww, wh, ww, c), (0, 1, 3, 2, 4, 5), image_shape)


def _rearranged(shape: Shape, split_shape: Shape, axes: Sequence[int], result: Shape) -> View:
    """Reshape to `split_shape`, transpose by `axes`, reshape to `result`."""
    opened = reshape(shape, split_shape)
    permuted = transpose(split_shape, axes)
    return compose(compose(reshape(permuted.shape, result), permuted), opened)


def _blocks(shape: Shape, block: int, mode: str) -> tuple[int, int, int, int]:
    if len(shape) != 4 or block < 1 or mode not in ("DCR", "CRD"):
        raise IndexMapError(f"block {block} in mode {mode!r} of shape {list(shape)}, expected [N, C, H, W]")
    n, c, h, w = shape
    return n, c, h, w


def _image(shape: Shape, window: tuple[int, int]) -> tuple[int, int, int, int]:
    if len(shape) != 4 or min(window) < 1 or shape[1] % window[0] or shape[2] % window[1]:
        raise IndexMapError(f"windows of {window} in shape {list(shape)}, expected [B, H, W, C] divisible by them")
    b, h, w, c = shape
    return b, h, w, c
