# mypy: disallow-subclassing-any=False
"""FLatten-PVT: Han et al., "FLatten Transformer: Vision Transformer using Focused Linear Attention", ICCV 2023.

A pyramid vision transformer whose attention is linear: the kernel function sharpens the direction of queries and keys
by a power and keeps their length, and a depthwise convolution of the values restores the rank of the attention map.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from smartmem_mlir.zoo.models.layers import Mlp, join_heads, split_heads, to_map, to_tokens

FOCUS = 3
"""The power of the focusing function."""
EPSILON = 1e-6


@dataclass(frozen=True)
class Config:
    """Input extent; channels, heads, MLP ratio and blocks of each stage; classes."""

    image: int
    dims: tuple[int, ...]
    heads: tuple[int, ...]
    mlp_ratios: tuple[int, ...]
    depths: tuple[int, ...]
    classes: int


FULL = Config(224, (64, 128, 320, 512), (1, 2, 5, 8), (8, 8, 4, 4), (3, 4, 18, 3), 1000)
SMALL = Config(64, (32, 64, 96, 160), (1, 2, 3, 5), (8, 8, 4, 4), (1, 1, 2, 2), 100)


class FocusedLinearAttention(nn.Module):
    """Linear attention on `size` x `size` tokens."""

    def __init__(self, dim: int, heads: int, size: int) -> None:
        super().__init__()
        self.heads, self.size = heads, size
        self.query = nn.Linear(dim, dim)
        self.key_value = nn.Linear(dim, 2 * dim)
        self.scale = nn.Parameter(torch.zeros(1, 1, dim))
        self.position = nn.Parameter(torch.zeros(1, size * size, dim))
        self.local = nn.Conv2d(dim // heads, dim // heads, 5, padding=2, groups=dim // heads)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """[B, N, C] -> [B, N, C]."""
        batch, tokens, dim = x.shape
        key, value = self.key_value(x).chunk(2, dim=-1)
        query = split_heads(self._focus(self.query(x)), self.heads)
        key = split_heads(self._focus(key + self.position), self.heads)
        value = split_heads(value, self.heads)

        normaliser = 1 / (query @ key.mean(dim=-2, keepdim=True).transpose(-2, -1) + EPSILON)
        context = (key.transpose(-2, -1) * tokens**-0.5) @ (value * tokens**-0.5)
        attended = join_heads(query @ context * normaliser)

        local = self.local(to_map(value.reshape(batch * self.heads, tokens, -1), self.size, self.size))
        local = local.reshape(batch, dim, tokens).transpose(1, 2)
        return self.proj(attended + local)

    def _focus(self, x: Tensor) -> Tensor:
        """ReLU(x) / softplus(scale), its direction raised to the power FOCUS, its length kept."""
        x = (x.relu() + EPSILON) / functional.softplus(self.scale)
        sharp = x**FOCUS
        return sharp / sharp.norm(dim=-1, keepdim=True) * x.norm(dim=-1, keepdim=True)


class Block(nn.Module):
    """Pre-norm focused linear attention and MLP."""

    def __init__(self, dim: int, heads: int, mlp_ratio: int, size: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.attention = FocusedLinearAttention(dim, heads, size)
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = Mlp(dim, mlp_ratio * dim)

    def forward(self, x: Tensor) -> Tensor:
        """[B, N, C] -> [B, N, C]."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Stage(nn.Module):
    """Patch embedding with a learned position, then blocks: [B, C, H, W] -> [B, dim, size, size]."""

    def __init__(self, inputs: int, patch: int, dim: int, size: int, blocks: list[Block]) -> None:
        super().__init__()
        self.size = size
        self.embed = nn.Conv2d(inputs, dim, patch, patch)
        self.norm = nn.LayerNorm(dim)
        self.position = nn.Parameter(torch.zeros(1, size * size, dim))
        self.blocks = nn.Sequential(*blocks)

    def forward(self, x: Tensor) -> Tensor:
        """One stage of the pyramid."""
        x = self.norm(to_tokens(self.embed(x))) + self.position
        return to_map(self.blocks(x), self.size, self.size)


class FLattenPvt(nn.Module):
    """The network: [B, 3, image, image] -> [B, classes]."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        stages, inputs, size = [], 3, config.image
        settings = zip(config.dims, config.heads, config.mlp_ratios, config.depths, strict=True)
        for index, (dim, heads, ratio, depth) in enumerate(settings):
            patch = 2 if index else 4
            size //= patch
            blocks = [Block(dim, heads, ratio, size) for _ in range(depth)]
            stages.append(Stage(inputs, patch, dim, size, blocks))
            inputs = dim
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(inputs, config.classes)

    def forward(self, image: Tensor) -> Tensor:
        """Class scores."""
        return self.head(to_tokens(self.stages(image)).mean(dim=1))


def build(small: bool) -> FLattenPvt:
    """FLatten-PVT-M, or its small variant."""
    return FLattenPvt(SMALL if small else FULL)
