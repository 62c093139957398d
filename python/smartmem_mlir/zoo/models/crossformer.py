# mypy: disallow-subclassing-any=False
"""CrossFormer: Wang et al., "CrossFormer: A Versatile Vision Transformer Hinging on Cross-scale Attention", ICLR 2022.

Patches of several sizes are embedded side by side; attention alternates between neighbouring tokens (short distance)
and tokens sampled at a fixed interval (long distance), a strided partition; the position bias comes from a small MLP.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from smartmem_mlir.zoo.models.layers import (
    Mlp,
    join_heads,
    partition,
    relative_position_index,
    split_heads,
    unpartition,
)


@dataclass(frozen=True)
class Config:
    """Input extent, channels of the first stage, blocks, heads and sampling interval of each stage, classes.

    The group of tokens that attend to each other is `group` x `group` at every stage.
    """

    image: int
    dim: int
    depths: tuple[int, ...]
    heads: tuple[int, ...]
    intervals: tuple[int, ...]
    classes: int
    group: int = 7


FULL = Config(224, 96, (2, 2, 6, 2), (3, 6, 12, 24), (8, 4, 2, 1), 1000)
SMALL = Config(112, 64, (2, 2, 2), (2, 4, 8), (4, 2, 1), 100)


class CrossScaleEmbedding(nn.Module):
    """Convolutions of several kernel sizes and one stride, concatenated; larger kernels get fewer channels."""

    def __init__(self, inputs: int, outputs: int, kernels: tuple[int, ...], stride: int) -> None:
        super().__init__()
        widths = [outputs >> (i + 1) for i in range(len(kernels))]
        widths[-1] = outputs - sum(widths[:-1])
        self.scales = nn.ModuleList(
            nn.Conv2d(inputs, width, kernel, stride, padding=(kernel - stride) // 2)
            for width, kernel in zip(widths, kernels, strict=True)
        )

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] -> [B, outputs, H/stride, W/stride]."""
        return torch.cat([scale(x) for scale in self.scales], dim=1)


class PositionBias(nn.Module):
    """Dynamic position bias: an MLP from a relative offset to one bias per head."""

    def __init__(self, dim: int, heads: int, group: int) -> None:
        super().__init__()
        hidden = dim // 16
        layers: list[nn.Module] = [nn.Linear(2, hidden)]
        for outputs in (hidden, hidden, heads):
            layers += [nn.LayerNorm(hidden), nn.ReLU(), nn.Linear(hidden, outputs)]
        self.mlp = nn.Sequential(*layers)
        self.tokens, self.heads = group * group, heads
        axis = torch.arange(1 - group, group).float()
        offsets = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), dim=-1).reshape(-1, 2)
        self.register_buffer("offsets", offsets, persistent=False)
        self.register_buffer("position_index", relative_position_index(group).flatten())

    def forward(self) -> Tensor:
        """Bias [heads, tokens, tokens]."""
        table = self.mlp(self.offsets)[self.position_index]
        return table.reshape(self.tokens, self.tokens, self.heads).permute(2, 0, 1)


class Attention(nn.Module):
    """Attention inside groups of tokens with a dynamic position bias."""

    def __init__(self, dim: int, heads: int, group: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim)
        self.position = PositionBias(dim, heads, group)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """[groups, tokens, C] -> [groups, tokens, C]."""
        query, key, value = (split_heads(part, self.heads) for part in self.qkv(x).chunk(3, dim=-1))
        scores = (query * self.scale) @ key.transpose(-2, -1) + self.position()
        return self.proj(join_heads(scores.softmax(-1) @ value))


class Block(nn.Module):
    """Pre-norm attention, short or long distance, and MLP."""

    def __init__(self, dim: int, heads: int, group: int, interval: int, long_distance: bool) -> None:
        super().__init__()
        self.group, self.interval, self.long_distance = group, interval, long_distance
        self.norm1 = nn.LayerNorm(dim)
        self.attention = Attention(dim, heads, group)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = Mlp(dim, 4 * dim)

    def forward(self, x: Tensor) -> Tensor:
        """[B, H, W, C] -> [B, H, W, C]."""
        y = self.norm1(x)
        x = x + (self._long(y) if self.long_distance else self._short(y))
        return x + self.mlp(self.norm2(x))

    def _short(self, x: Tensor) -> Tensor:
        window = (self.group, self.group)
        return unpartition(self.attention(partition(x, window)), window, (x.shape[1], x.shape[2]))

    def _long(self, x: Tensor) -> Tensor:
        """Tokens whose coordinates agree modulo the interval form a group."""
        batch, height, width, dim = x.shape
        step, rows, columns = self.interval, height // self.interval, width // self.interval
        groups = x.reshape(batch, rows, step, columns, step, dim).permute(0, 2, 4, 1, 3, 5)
        groups = self.attention(groups.reshape(-1, rows * columns, dim))
        groups = groups.reshape(batch, step, step, rows, columns, dim).permute(0, 3, 1, 4, 2, 5)
        return groups.reshape(batch, height, width, dim)


class PatchMerging(nn.Module):
    """Normalise, then embed 2x2 and 4x4 patches at stride 2."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.embed = CrossScaleEmbedding(dim, 2 * dim, (2, 4), stride=2)

    def forward(self, x: Tensor) -> Tensor:
        """[B, H, W, C] -> [B, H/2, W/2, 2C]."""
        return self.embed(self.norm(x).permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


class CrossFormer(nn.Module):
    """The network: [B, 3, image, image] -> [B, classes]."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.embed = CrossScaleEmbedding(3, config.dim, (4, 8, 16, 32), stride=4)
        self.embed_norm = nn.LayerNorm(config.dim)
        size, dim, parts = config.image // 4, config.dim, []
        settings = zip(config.depths, config.heads, config.intervals, strict=True)
        for index, (depth, heads, interval) in enumerate(settings):
            if index:
                parts.append(PatchMerging(dim))
                size, dim = size // 2, 2 * dim
            # A map no larger than a group leaves nothing to sample at an interval.
            long_possible = size > config.group
            parts += [
                Block(dim, heads, config.group, interval, long_distance=long_possible and i % 2 == 1)
                for i in range(depth)
            ]
        self.stages = nn.Sequential(*parts)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, config.classes)

    def forward(self, image: Tensor) -> Tensor:
        """Class scores."""
        x = self.embed_norm(self.embed(image).permute(0, 2, 3, 1))
        return self.head(self.norm(self.stages(x)).mean(dim=(1, 2)))


def build(small: bool) -> CrossFormer:
    """CrossFormer-S, or its small variant."""
    return CrossFormer(SMALL if small else FULL)
