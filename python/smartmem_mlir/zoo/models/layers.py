# mypy: disallow-subclassing-any=False
"""What several vision transformers share: token and window rearrangements, the MLP, the classifier."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Mlp(nn.Module):
    """Linear -> GELU -> Linear on the last axis.

    Args:
        dim: Channels in and out.
        hidden: Channels between.
    """

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.expand = nn.Linear(dim, hidden)
        self.activation = nn.GELU()
        self.reduce = nn.Linear(hidden, dim)

    def forward(self, x: Tensor) -> Tensor:
        """[..., dim] -> [..., dim]."""
        return self.reduce(self.activation(self.expand(x)))


def to_tokens(x: Tensor) -> Tensor:
    """[B, C, H, W] -> [B, H*W, C]."""
    return x.flatten(2).transpose(1, 2)


def to_map(x: Tensor, height: int, width: int) -> Tensor:
    """[B, H*W, C] -> [B, C, H, W]."""
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], height, width)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """[B, N, C] -> [B, heads, N, C/heads]."""
    batch, tokens, channels = x.shape
    return x.reshape(batch, tokens, heads, channels // heads).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """[B, heads, N, D] -> [B, N, heads*D]."""
    batch, heads, tokens, depth = x.shape
    return x.transpose(1, 2).reshape(batch, tokens, heads * depth)


def partition(x: Tensor, window: tuple[int, int]) -> Tensor:
    """Cut [B, H, W, C] into windows: [B * H/h * W/w, h*w, C]; h and w must divide H and W."""
    batch, height, width, channels = x.shape
    h, w = window
    x = x.reshape(batch, height // h, h, width // w, w, channels).permute(0, 1, 3, 2, 4, 5)
    return x.reshape(-1, h * w, channels)


def unpartition(x: Tensor, window: tuple[int, int], size: tuple[int, int]) -> Tensor:
    """Inverse of :func:`partition` for a map of extents `size`: [B*n, h*w, C] -> [B, H, W, C]."""
    (h, w), (height, width), channels = window, size, x.shape[-1]
    x = x.reshape(-1, height // h, width // w, h, w, channels).permute(0, 1, 3, 2, 4, 5)
    return x.reshape(-1, height, width, channels)


def relative_position_index(window: int) -> Tensor:
    """Row of a (2*window-1)^2 table for each pair of positions of a square window: int64 [window^2, window^2]."""
    axis = torch.arange(window)
    y, x = (grid.flatten() for grid in torch.meshgrid(axis, axis, indexing="ij"))
    dy = y[:, None] - y[None, :] + window - 1
    dx = x[:, None] - x[None, :] + window - 1
    return dy * (2 * window - 1) + dx
