# mypy: disallow-subclassing-any=False
"""Conformer: Gulati et al., "Conformer: Convolution-augmented Transformer for Speech Recognition", Interspeech 2020.

The encoder with a CTC output layer. Self-attention has relative positions in the manner of Transformer-XL (Dai et
al., ACL 2019): the scores of all 2T-1 distances are computed and then skewed into place by a pad, a reshape and a
slice, a view that is none of the usual transposes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from smartmem_mlir.zoo.models.layers import join_heads, split_heads, to_tokens


@dataclass(frozen=True)
class Config:
    """Frames and mel bands of the input, channels, heads, blocks, depthwise kernel, output units."""

    frames: int
    mels: int
    dim: int
    heads: int
    depth: int
    kernel: int
    units: int


FULL = Config(frames=2600, mels=80, dim=144, heads=4, depth=16, kernel=31, units=5000)
SMALL = Config(frames=131, mels=80, dim=112, heads=4, depth=3, kernel=31, units=200)


class Subsampling(nn.Module):
    """Two 3x3 convolutions at stride 2: a quarter of the frames."""

    def __init__(self, mels: int, dim: int) -> None:
        super().__init__()
        self.convs = nn.Sequential(nn.Conv2d(1, dim, 3, 2), nn.ReLU(), nn.Conv2d(dim, dim, 3, 2), nn.ReLU())
        self.proj = nn.Linear(dim * subsampled(mels), dim)

    def forward(self, x: Tensor) -> Tensor:
        """[B, frames, mels] -> [B, T, dim]."""
        return self.proj(self.convs(x.unsqueeze(1)).transpose(1, 2).flatten(2))


def subsampled(extent: int) -> int:
    """An extent after two unpadded 3-wide convolutions at stride 2."""
    return ((extent - 1) // 2 - 1) // 2


class FeedForward(nn.Module):
    """LayerNorm -> Linear -> SiLU -> Linear."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.SiLU(), nn.Linear(4 * dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, dim] -> [B, T, dim]."""
        return self.layers(x)


class RelativeAttention(nn.Module):
    """Multi-head self-attention over T tokens with relative sinusoidal positions."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.position = nn.Linear(dim, dim, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(heads, 1, dim // heads))
        self.position_bias = nn.Parameter(torch.zeros(heads, 1, dim // heads))
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor, sinusoids: Tensor) -> Tensor:
        """[B, T, dim], distances [1, 2T-1, dim] -> [B, T, dim]."""
        query, key, value = (split_heads(part, self.heads) for part in self.qkv(self.norm(x)).chunk(3, dim=-1))
        distance = split_heads(self.position(sinusoids), self.heads)
        content = (query + self.content_bias) @ key.transpose(-2, -1)
        position = _skew((query + self.position_bias) @ distance.transpose(-2, -1))
        scores = (content + position) * self.scale
        return self.proj(join_heads(scores.softmax(-1) @ value))


def _sinusoids(tokens: int, dim: int) -> Tensor:
    """Encodings of the distances T-1 ... -(T-1): [1, 2T-1, dim]."""
    distance = torch.arange(tokens - 1, -tokens, -1).float()[:, None]
    frequency = torch.exp(torch.arange(0, dim, 2).float() * (-math.log(10000.0) / dim))
    angles = distance * frequency
    return torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(1, -1, dim)


def _skew(scores: Tensor) -> Tensor:
    """Row i keeps the distances i - j of its columns j: [B, heads, T, 2T-1] -> [B, heads, T, T].

    One column of padding, a reshape that shears the rows by one, and slices.
    """
    batch, heads, tokens, distances = scores.shape
    padded = nn.functional.pad(scores, (1, 0))
    sheared = padded.reshape(batch, heads, distances + 1, tokens)[:, :, 1:]
    return sheared.reshape(batch, heads, tokens, distances)[..., :tokens]


class Convolution(nn.Module):
    """Gated pointwise convolution, depthwise convolution, BatchNorm, SiLU, pointwise convolution."""

    def __init__(self, dim: int, kernel: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.gate = nn.Conv1d(dim, 2 * dim, 1)
        self.depthwise = nn.Conv1d(dim, dim, kernel, padding=kernel // 2, groups=dim)
        self.batch_norm = nn.BatchNorm1d(dim)
        self.activation = nn.SiLU()
        self.pointwise = nn.Conv1d(dim, dim, 1)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, dim] -> [B, T, dim]."""
        x = nn.functional.glu(self.gate(self.norm(x).transpose(1, 2)), dim=1)
        return to_tokens(self.pointwise(self.activation(self.batch_norm(self.depthwise(x)))))


class Block(nn.Module):
    """Half a feed-forward, attention, convolution, the other half, LayerNorm."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.before = FeedForward(config.dim)
        self.attention = RelativeAttention(config.dim, config.heads)
        self.convolution = Convolution(config.dim, config.kernel)
        self.after = FeedForward(config.dim)
        self.norm = nn.LayerNorm(config.dim)

    def forward(self, x: Tensor, sinusoids: Tensor) -> Tensor:
        """[B, T, dim], distances [1, 2T-1, dim] -> [B, T, dim]."""
        x = x + 0.5 * self.before(x)
        x = x + self.attention(x, sinusoids)
        x = x + self.convolution(x)
        return self.norm(x + 0.5 * self.after(x))


class Conformer(nn.Module):
    """The network: mel spectrogram [B, frames, mels] -> unit scores [B, T, units]."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.subsampling = Subsampling(config.mels, config.dim)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.depth))
        sinusoids = _sinusoids(subsampled(config.frames), config.dim)
        self.register_buffer("sinusoids", sinusoids, persistent=False)
        self.head = nn.Linear(config.dim, config.units)

    def forward(self, mel: Tensor) -> Tensor:
        """Log-probabilities of the output units."""
        x = self.subsampling(mel)
        for block in self.blocks:
            x = block(x, self.sinusoids)
        return self.head(x).log_softmax(-1)


def build(small: bool) -> Conformer:
    """Conformer-S, or its small variant."""
    return Conformer(SMALL if small else FULL)
