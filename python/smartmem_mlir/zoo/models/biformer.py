# mypy: disallow-subclassing-any=False
"""BiFormer: Zhu et al., "BiFormer: Vision Transformer with Bi-Level Routing Attention", CVPR 2023.

Each region attends to the tokens of the `topk` regions whose mean key agrees best with its mean query. Which ones is
decided at run time, by TopK and a gather: an index map that no compiler can resolve.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from smartmem_mlir.zoo.models.layers import Mlp, join_heads, partition, split_heads, to_map, unpartition

REGIONS = 7
"""Regions along each side of the map, at every stage."""
HEAD_DIM = 32
MLP_RATIO = 3
ALL = -1
"""In place of a number of regions: plain attention over the whole map."""


@dataclass(frozen=True)
class Config:
    """Channels, blocks and routed regions of each stage; classes."""

    dims: tuple[int, ...]
    depths: tuple[int, ...]
    topk: tuple[int, ...]
    classes: int


FULL = Config(dims=(64, 128, 256, 512), depths=(4, 4, 18, 4), topk=(1, 4, 16, ALL), classes=1000)
SMALL = Config(dims=(32, 64, 160), depths=(1, 3, 4), topk=(1, 4, ALL), classes=100)


class RoutingAttention(nn.Module):
    """Bi-level routing attention on [B, H, W, C] with REGIONS x REGIONS regions."""

    def __init__(self, dim: int, topk: int) -> None:
        super().__init__()
        self.topk, self.heads, self.scale = topk, dim // HEAD_DIM, dim**-0.5
        self.qkv = nn.Linear(dim, 3 * dim)
        self.local = nn.Conv2d(dim, dim, 5, padding=2, groups=dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """[B, H, W, C] -> [B, H, W, C]; REGIONS divides H and W."""
        batch, height, width, dim = x.shape
        window, count = (height // REGIONS, width // REGIONS), REGIONS * REGIONS
        regions = partition(x, window).reshape(batch, count, -1, dim)
        query, key, value = self.qkv(regions).chunk(3, dim=-1)

        affinity = (query.mean(2) * self.scale) @ key.mean(2).transpose(-2, -1)
        chosen = affinity.topk(self.topk, dim=-1).indices
        query = split_heads(query.flatten(0, 1), self.heads)
        key = split_heads(self._gather(key, chosen), self.heads)
        routed = split_heads(self._gather(value, chosen), self.heads)
        scores = (query * self.scale) @ key.transpose(-2, -1)
        attended = unpartition(join_heads(scores.softmax(-1) @ routed), window, (height, width))

        values = unpartition(value.flatten(0, 1), window, (height, width))
        local = self.local(values.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        return self.proj(attended + local)

    def _gather(self, x: Tensor, chosen: Tensor) -> Tensor:
        """Tokens [B, regions, tokens, C] of the chosen regions [B, regions, topk]: [B*regions, topk*tokens, C]."""
        batch, count, tokens, dim = x.shape
        index = chosen.reshape(batch, count, self.topk, 1, 1).expand(-1, -1, -1, tokens, dim)
        source = x.reshape(batch, 1, count, tokens, dim).expand(-1, count, -1, -1, -1)
        return torch.gather(source, 2, index).reshape(batch * count, self.topk * tokens, dim)


class GlobalAttention(nn.Module):
    """Plain attention over the whole map, with the same local enhancement."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.heads, self.scale = dim // HEAD_DIM, HEAD_DIM**-0.5
        self.qkv = nn.Linear(dim, 3 * dim)
        self.local = nn.Conv2d(dim, dim, 5, padding=2, groups=dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """[B, H, W, C] -> [B, H, W, C]."""
        _, height, width, _ = x.shape
        query, key, value = self.qkv(x.flatten(1, 2)).chunk(3, dim=-1)
        local = self.local(to_map(value, height, width)).permute(0, 2, 3, 1)
        scores = (split_heads(query, self.heads) * self.scale) @ split_heads(key, self.heads).transpose(-2, -1)
        attended = join_heads(scores.softmax(-1) @ split_heads(value, self.heads))
        return self.proj(attended.unflatten(1, (height, width)) + local)


class Block(nn.Module):
    """Convolutional position encoding, attention and MLP, each residual, on [B, C, H, W]."""

    def __init__(self, dim: int, topk: int) -> None:
        super().__init__()
        self.position = nn.Conv2d(dim, dim, 3, padding=1, groups=dim)
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.attention = GlobalAttention(dim) if topk == ALL else RoutingAttention(dim, topk)
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = Mlp(dim, MLP_RATIO * dim)

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] -> [B, C, H, W]."""
        x = (x + self.position(x)).permute(0, 2, 3, 1)
        x = x + self.attention(self.norm1(x))
        x = x + self.mlp(self.norm2(x))
        return x.permute(0, 3, 1, 2)


def _downsample(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.BatchNorm2d(outputs)]


class BiFormer(nn.Module):
    """The network: [B, 3, H, W] -> [B, classes]; 28 * REGIONS divides H and W at full size."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        first = config.dims[0]
        parts = [*_downsample(3, first // 2), nn.GELU(), *_downsample(first // 2, first)]
        for index, (dim, depth, topk) in enumerate(zip(config.dims, config.depths, config.topk, strict=True)):
            if index:
                parts += _downsample(config.dims[index - 1], dim)
            parts += [Block(dim, topk) for _ in range(depth)]
        self.stages = nn.Sequential(*parts)
        self.norm = nn.BatchNorm2d(config.dims[-1])
        self.head = nn.Linear(config.dims[-1], config.classes)

    def forward(self, image: Tensor) -> Tensor:
        """Class scores."""
        return self.head(self.norm(self.stages(image)).flatten(2).mean(-1))


def build(small: bool) -> BiFormer:
    """BiFormer-S, or its small variant."""
    return BiFormer(SMALL if small else FULL)
