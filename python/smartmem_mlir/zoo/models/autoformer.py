# mypy: disallow-subclassing-any=False
"""AutoFormer-S3: Chen et al., "Searching the Search Space of Vision Transformer", NeurIPS 2021.

A shifted-window transformer whose depth, width, heads, MLP ratio and window size are chosen block by block; the tiny
result of the search uses windows as large as the map (14) in its third stage.
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

HEAD_DIM = 32
MASKED = -100.0
"""Added to the score of two positions that a cyclic shift brought together."""


@dataclass(frozen=True)
class BlockConfig:
    """What the search chose for one block."""

    heads: int
    window: int
    mlp_ratio: float = 4.0


@dataclass(frozen=True)
class Config:
    """Input extent, patch size, channels of each stage, blocks of each stage, classes."""

    image: int
    patch: int
    dims: tuple[int, ...]
    stages: tuple[tuple[BlockConfig, ...], ...]
    classes: int


FULL = Config(
    image=224,
    patch=4,
    dims=(96, 192, 384, 768),
    stages=(
        (BlockConfig(3, 7),) * 2,
        (BlockConfig(6, 7),) * 2,
        (BlockConfig(12, 14),) * 6,
        (BlockConfig(24, 7),) * 2,
    ),
    classes=1000,
)
SMALL = Config(
    image=112,
    patch=4,
    dims=(64, 128, 192),
    stages=(
        (BlockConfig(2, 7), BlockConfig(2, 7, 3.0)),
        (BlockConfig(4, 7), BlockConfig(4, 14)),
        (BlockConfig(6, 7), BlockConfig(6, 7)),
    ),
    classes=100,
)


class WindowAttention(nn.Module):
    """Attention inside windows with a learned bias for each relative position."""

    def __init__(self, dim: int, window: int, heads: int) -> None:
        super().__init__()
        self.heads, self.tokens = heads, window * window
        self.qkv = nn.Linear(dim, 3 * heads * HEAD_DIM)
        self.proj = nn.Linear(heads * HEAD_DIM, dim)
        self.position_table = nn.Parameter(torch.zeros((2 * window - 1) ** 2, heads))
        self.register_buffer("position_index", relative_position_index(window).flatten())

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """[windows, tokens, C], mask [windows, tokens, tokens] -> [windows, tokens, C]."""
        query, key, value = (split_heads(part, self.heads) for part in self.qkv(x).chunk(3, dim=-1))
        scores = (query * HEAD_DIM**-0.5) @ key.transpose(-2, -1)
        bias = self.position_table[self.position_index].reshape(self.tokens, self.tokens, self.heads)
        scores = scores + bias.permute(2, 0, 1)
        if mask is not None:
            scores = scores + mask.unsqueeze(1)
        return self.proj(join_heads(scores.softmax(-1) @ value))


class Block(nn.Module):
    """Pre-norm window attention (shifted in every second block) and MLP."""

    def __init__(self, dim: int, size: int, config: BlockConfig, shifted: bool) -> None:
        super().__init__()
        self.size, self.window = size, min(config.window, size)
        self.shift = config.window // 2 if shifted and config.window < size else 0
        self.norm1 = nn.LayerNorm(dim)
        self.attention = WindowAttention(dim, self.window, config.heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = Mlp(dim, int(dim * config.mlp_ratio))
        mask = _shift_mask(size, self.window, self.shift) if self.shift else None
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """[B, H, W, C] -> [B, H, W, C]."""
        window = (self.window, self.window)
        y = self.norm1(x)
        if self.shift:
            y = y.roll((-self.shift, -self.shift), dims=(1, 2))
        y = unpartition(self.attention(partition(y, window), self.mask), window, (self.size, self.size))
        if self.shift:
            y = y.roll((self.shift, self.shift), dims=(1, 2))
        x = x + y
        return x + self.mlp(self.norm2(x))


def _shift_mask(size: int, window: int, shift: int) -> Tensor:
    """MASKED where two positions of a shifted window come from different sides of the map, else 0."""
    axis = torch.arange(size)
    band = (axis >= size - window).long() + (axis >= size - shift).long()
    regions = partition((band[:, None] * 3 + band[None, :])[None, :, :, None], (window, window)).squeeze(-1)
    return (regions[:, :, None] != regions[:, None, :]).float() * MASKED


class PatchMerging(nn.Module):
    """Join 2x2 neighbours on the channel axis, normalise, project."""

    def __init__(self, dim: int, out: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4 * dim)
        self.reduction = nn.Linear(4 * dim, out, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """[B, H, W, C] -> [B, H/2, W/2, out]."""
        quarters = [x[:, dy::2, dx::2] for dx in (0, 1) for dy in (0, 1)]
        return self.reduction(self.norm(torch.cat(quarters, dim=-1)))


class AutoFormer(nn.Module):
    """The network: [B, 3, image, image] -> [B, classes]."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, config.dims[0], config.patch, config.patch)
        self.embed_norm = nn.LayerNorm(config.dims[0])
        size, parts = config.image // config.patch, []
        for index, (dim, blocks) in enumerate(zip(config.dims, config.stages, strict=True)):
            if index:
                parts.append(PatchMerging(config.dims[index - 1], dim))
                size //= 2
            parts += [Block(dim, size, block, shifted=i % 2 == 1) for i, block in enumerate(blocks)]
        self.stages = nn.Sequential(*parts)
        self.norm = nn.LayerNorm(config.dims[-1])
        self.head = nn.Linear(config.dims[-1], config.classes)

    def forward(self, image: Tensor) -> Tensor:
        """Class scores."""
        x = self.embed_norm(self.embed(image).permute(0, 2, 3, 1))
        x = self.norm(self.stages(x))
        return self.head(x.mean(dim=(1, 2)))


def build(small: bool) -> AutoFormer:
    """S3-T, or its small variant."""
    return AutoFormer(SMALL if small else FULL)
