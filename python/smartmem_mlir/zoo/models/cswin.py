# mypy: disallow-subclassing-any=False
"""CSWin: Dong et al., "CSWin Transformer: A General Vision Transformer Backbone with Cross-Shaped Windows", CVPR 2022.

Half of the heads attend inside horizontal stripes, half inside vertical ones; values get a depthwise convolution
inside their stripe as position encoding (LePE).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from smartmem_mlir.zoo.models.layers import Mlp, join_heads, partition, split_heads, to_map, to_tokens, unpartition


@dataclass(frozen=True)
class Config:
    """Input extent, channels of the first stage, blocks, stripe width and heads of each stage, classes."""

    image: int
    dim: int
    depths: tuple[int, ...]
    stripes: tuple[int, ...]
    heads: tuple[int, ...]
    classes: int


FULL = Config(224, 64, (2, 4, 32, 2), (1, 2, 7, 7), (2, 4, 8, 16), 1000)
SMALL = Config(112, 48, (1, 2, 2), (1, 7, 7), (2, 4, 8), 100)


class StripeAttention(nn.Module):
    """Attention inside windows of one shape, plus LePE."""

    def __init__(self, dim: int, heads: int, size: int, window: tuple[int, int]) -> None:
        super().__init__()
        self.heads, self.scale, self.size, self.window = heads, (dim // heads) ** -0.5, size, window
        self.position = nn.Conv2d(dim, dim, 3, padding=1, groups=dim)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Three times [B, N, C] -> [B, N, C]."""
        query, key, value = (self._windows(part) for part in (query, key, value))
        position = to_tokens(self.position(to_map(value, *self.window)))
        query, key, heads = (split_heads(part, self.heads) for part in (query, key, value))
        scores = (query * self.scale) @ key.transpose(-2, -1)
        attended = join_heads(scores.softmax(-1) @ heads) + position
        return unpartition(attended, self.window, (self.size, self.size)).flatten(1, 2)

    def _windows(self, x: Tensor) -> Tensor:
        """[B, N, C] -> [windows, tokens, C]."""
        return partition(x.unflatten(1, (self.size, self.size)), self.window)


class Block(nn.Module):
    """Pre-norm cross-shaped attention and MLP; stripes as wide as the map make it plain attention."""

    def __init__(self, dim: int, heads: int, size: int, stripe: int) -> None:
        super().__init__()
        windows = [(size, size)] if stripe == size else [(size, stripe), (stripe, size)]
        self.branches = nn.ModuleList(
            StripeAttention(dim // len(windows), heads // len(windows), size, window) for window in windows
        )
        self.norm1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = Mlp(dim, 4 * dim)

    def forward(self, x: Tensor) -> Tensor:
        """[B, N, C] -> [B, N, C]."""
        query, key, value = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        parts = [part.chunk(len(self.branches), dim=-1) for part in (query, key, value)]
        attended = [branch(*(part[i] for part in parts)) for i, branch in enumerate(self.branches)]
        x = x + self.proj(torch.cat(attended, dim=-1))
        return x + self.mlp(self.norm2(x))


class Downsample(nn.Module):
    """3x3 convolution at stride 2, then LayerNorm over channels."""

    def __init__(self, dim: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.conv = nn.Conv2d(dim, 2 * dim, 3, stride=2, padding=1)
        self.norm = nn.LayerNorm(2 * dim)

    def forward(self, x: Tensor) -> Tensor:
        """[B, N, C] -> [B, N/4, 2C]."""
        return self.norm(to_tokens(self.conv(to_map(x, self.size, self.size))))


class CSwin(nn.Module):
    """The network: [B, 3, image, image] -> [B, classes]."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, config.dim, 7, stride=4, padding=2)
        self.embed_norm = nn.LayerNorm(config.dim)
        size, dim, parts = config.image // 4, config.dim, []
        settings = zip(config.depths, config.stripes, config.heads, strict=True)
        for index, (depth, stripe, heads) in enumerate(settings):
            if index:
                parts.append(Downsample(dim, size))
                size, dim = size // 2, 2 * dim
            parts += [Block(dim, heads, size, stripe) for _ in range(depth)]
        self.stages = nn.Sequential(*parts)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, config.classes)

    def forward(self, image: Tensor) -> Tensor:
        """Class scores."""
        x = self.embed_norm(to_tokens(self.embed(image)))
        return self.head(self.norm(self.stages(x)).mean(dim=1))


def build(small: bool) -> CSwin:
    """CSWin-S, or its small variant."""
    return CSwin(SMALL if small else FULL)
