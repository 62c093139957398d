# mypy: disallow-subclassing-any=False
"""SMT: Lin et al., "Scale-Aware Modulation Meet Transformer", ICCV 2023.

Early stages modulate the values by multi-head depthwise convolutions of growing kernel size, whose channels are
interleaved across heads before a grouped 1x1 convolution; late stages use attention; the third alternates.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from smartmem_mlir.zoo.models.layers import join_heads, split_heads, to_map, to_tokens

EXPAND = 2
"""Growth of the channels between the two 1x1 convolutions of the aggregation."""
SCALE_HEADS = 4
"""Heads of the modulation; head i has a (3 + 2i) x (3 + 2i) kernel."""


@dataclass(frozen=True)
class Config:
    """Channels, attention heads, MLP ratio and blocks of each stage; blocks that modulate, by stage; classes.

    `mix` has a letter for each stage: `m` modulation, `a` attention, `x` both in turn.
    """

    dims: tuple[int, ...]
    heads: tuple[int, ...]
    mlp_ratios: tuple[int, ...]
    depths: tuple[int, ...]
    mix: str
    classes: int


FULL = Config((64, 128, 256, 512), (0, 0, 8, 16), (4, 4, 4, 2), (3, 4, 18, 2), "mmxa", 1000)
SMALL = Config((32, 64, 96, 192), (0, 0, 3, 6), (4, 4, 4, 2), (1, 1, 2, 2), "mmxa", 100)


class Modulation(nn.Module):
    """Scale-aware modulation on [B, H*W, C]."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.width = dim // SCALE_HEADS
        self.value = nn.Linear(dim, dim)
        self.scale_in = nn.Linear(dim, dim)
        self.convs = nn.ModuleList(
            nn.Conv2d(self.width, self.width, 3 + 2 * i, padding=1 + i, groups=self.width) for i in range(SCALE_HEADS)
        )
        self.aggregate = nn.Sequential(
            nn.Conv2d(dim, dim * EXPAND, 1, groups=self.width),
            nn.BatchNorm2d(dim * EXPAND),
            nn.GELU(),
            nn.Conv2d(dim * EXPAND, dim, 1),
        )
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor, height: int, width: int) -> Tensor:
        """[B, H*W, C] -> [B, H*W, C]."""
        batch, _, dim = x.shape
        heads = to_map(self.scale_in(x), height, width).chunk(SCALE_HEADS, dim=1)
        # Channel c of every head side by side: each group of the 1x1 convolution sees all kernel sizes.
        scales = torch.stack([conv(head) for conv, head in zip(self.convs, heads, strict=True)], dim=2)
        modulator = self.aggregate(scales.reshape(batch, dim, height, width))
        return self.proj(to_tokens(modulator) * self.value(x))


class Attention(nn.Module):
    """Plain attention with a depthwise convolution of the values, on [B, H*W, C]."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.query = nn.Linear(dim, dim)
        self.key_value = nn.Linear(dim, 2 * dim)
        self.local = nn.Conv2d(dim, dim, 3, padding=1, groups=dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor, height: int, width: int) -> Tensor:
        """[B, H*W, C] -> [B, H*W, C]."""
        key, value = self.key_value(x).chunk(2, dim=-1)
        query, key, heads = (split_heads(part, self.heads) for part in (self.query(x), key, value))
        scores = query @ key.transpose(-2, -1) * self.scale
        local = to_tokens(self.local(to_map(value, height, width)))
        return self.proj(join_heads(scores.softmax(-1) @ heads) + local)


class ConvMlp(nn.Module):
    """MLP with a residual 3x3 depthwise convolution before its activation."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.expand = nn.Linear(dim, hidden)
        self.local = nn.Conv2d(hidden, hidden, 3, padding=1, groups=hidden)
        self.activation = nn.GELU()
        self.reduce = nn.Linear(hidden, dim)

    def forward(self, x: Tensor, height: int, width: int) -> Tensor:
        """[B, H*W, C] -> [B, H*W, C]."""
        x = self.expand(x)
        return self.reduce(self.activation(x + to_tokens(self.local(to_map(x, height, width)))))


class Block(nn.Module):
    """Pre-norm token mixer and MLP; `heads` of 0 means modulation."""

    def __init__(self, dim: int, heads: int, mlp_ratio: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.mixer = Attention(dim, heads) if heads else Modulation(dim)
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = ConvMlp(dim, mlp_ratio * dim)

    def forward(self, x: Tensor, height: int, width: int) -> Tensor:
        """[B, H*W, C] -> [B, H*W, C]."""
        x = x + self.mixer(self.norm1(x), height, width)
        return x + self.mlp(self.norm2(x), height, width)


class Stage(nn.Module):
    """Embedding, blocks and LayerNorm: [B, C, H, W] -> [B, dim, H/2, W/2] (H/4 for the stem)."""

    def __init__(self, embed: nn.Module, dim: int, blocks: list[Block]) -> None:
        super().__init__()
        self.embed = embed
        self.embed_norm = nn.LayerNorm(dim)
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(dim, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        """One stage of the pyramid."""
        x = self.embed(x)
        height, width = x.shape[2:]
        x = self.embed_norm(to_tokens(x))
        for block in self.blocks:
            x = block(x, height, width)
        return to_map(self.norm(x), height, width)


class Smt(nn.Module):
    """The network: [B, 3, H, W] -> [B, classes]."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        stages = []
        settings = zip(config.dims, config.heads, config.mlp_ratios, config.depths, config.mix, strict=True)
        for index, (dim, heads, ratio, depth, mix) in enumerate(settings):
            attends = [mix == "a" or (mix == "x" and i % 2 == 1) for i in range(depth)]
            blocks = [Block(dim, heads if attend else 0, ratio) for attend in attends]
            embed = nn.Conv2d(config.dims[index - 1], dim, 3, stride=2, padding=1) if index else _stem(dim)
            stages.append(Stage(embed, dim, blocks))
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(config.dims[-1], config.classes)

    def forward(self, image: Tensor) -> Tensor:
        """Class scores."""
        return self.head(to_tokens(self.stages(image)).mean(dim=1))


def _stem(dim: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, dim, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(dim),
        nn.ReLU(),
        nn.Conv2d(dim, dim, 2, stride=2),
    )


def build(small: bool) -> Smt:
    """SMT-S, or its small variant."""
    return Smt(SMALL if small else FULL)
