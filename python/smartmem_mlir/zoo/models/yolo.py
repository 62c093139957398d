# mypy: disallow-subclassing-any=False
"""An anchor-free single-stage detector with the published structure of YOLOv8 (nano), written for this zoo.

A backbone of cross-stage-partial stages (Wang et al., CVPRW 2020), spatial pyramid pooling (He et al., TPAMI 2015), a
path aggregation neck (Liu et al., CVPR 2018), and decoupled heads whose boxes are expectations over 16 bins
(distribution focal loss, Li et al., NeurIPS 2020). Three concats of uneven extents end in one [B, 84, 8400] tensor.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

BINS = 16
"""Bins of the distribution over each side's distance."""
STRIDES = (8, 16, 32)


@dataclass(frozen=True)
class Config:
    """Input extent; channels of the five levels; bottlenecks of the four backbone stages; classes."""

    image: int
    widths: tuple[int, int, int, int, int]
    depths: tuple[int, int, int, int]
    classes: int


FULL = Config(640, (16, 32, 64, 128, 256), (1, 2, 2, 1), 80)
SMALL = Config(96, (16, 32, 48, 72, 112), (1, 2, 1, 1), 12)


class ConvBlock(nn.Module):
    """Convolution, BatchNorm, SiLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs, eps=1e-3)
        self.activation = nn.SiLU()

    def forward(self, x: Tensor) -> Tensor:
        """[B, inputs, H, W] -> [B, outputs, H/stride, W/stride]."""
        return self.activation(self.norm(self.conv(x)))


class Bottleneck(nn.Module):
    """Two 3x3 convolutions, residual where asked."""

    def __init__(self, width: int, residual: bool) -> None:
        super().__init__()
        self.residual = residual
        self.convs = nn.Sequential(ConvBlock(width, width, 3), ConvBlock(width, width, 3))

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] -> [B, C, H, W]."""
        return x + self.convs(x) if self.residual else self.convs(x)


class SplitStage(nn.Module):
    """Cross-stage-partial stage that concatenates the output of every bottleneck."""

    def __init__(self, inputs: int, outputs: int, depth: int, residual: bool) -> None:
        super().__init__()
        half = outputs // 2
        self.enter = ConvBlock(inputs, outputs)
        self.bottlenecks = nn.ModuleList(Bottleneck(half, residual) for _ in range(depth))
        self.leave = ConvBlock((2 + depth) * half, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """[B, inputs, H, W] -> [B, outputs, H, W]."""
        parts = list(self.enter(x).chunk(2, dim=1))
        for bottleneck in self.bottlenecks:
            parts.append(bottleneck(parts[-1]))
        return self.leave(torch.cat(parts, dim=1))


class PyramidPooling(nn.Module):
    """Three 5x5 max-poolings in a row, all four maps concatenated."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.enter = ConvBlock(width, width // 2)
        self.pool = nn.MaxPool2d(5, stride=1, padding=2)
        self.leave = ConvBlock(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] -> [B, C, H, W]."""
        parts = [self.enter(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.leave(torch.cat(parts, dim=1))


class Head(nn.Module):
    """Boxes and class scores from the three levels: [B, 4 + classes, anchors]."""

    def __init__(self, image: int, widths: tuple[int, int, int], classes: int) -> None:
        super().__init__()
        self.classes = classes
        box_width = max(BINS, widths[0] // 4, 4 * BINS)
        class_width = max(widths[0], min(classes, 100))
        self.boxes = nn.ModuleList(_branch(width, box_width, 4 * BINS) for width in widths)
        self.scores = nn.ModuleList(_branch(width, class_width, classes) for width in widths)
        centres, strides = _anchors(image)
        self.register_buffer("bins", torch.arange(BINS).float(), persistent=False)
        self.register_buffer("centres", centres, persistent=False)
        self.register_buffer("strides", strides, persistent=False)

    def forward(self, levels: list[Tensor]) -> Tensor:
        """Boxes as (x, y, width, height) in pixels, then class probabilities."""
        boxes = torch.cat([head(x).flatten(2) for head, x in zip(self.boxes, levels, strict=True)], dim=2)
        scores = torch.cat([head(x).flatten(2) for head, x in zip(self.scores, levels, strict=True)], dim=2)
        bins = boxes.reshape(boxes.shape[0], 4, BINS, -1).softmax(2)
        near, far = (bins * self.bins[:, None]).sum(2).chunk(2, dim=1)
        low, high = self.centres - near, self.centres + far
        pixels = torch.cat([(low + high) / 2, high - low], dim=1) * self.strides
        return torch.cat([pixels, scores.sigmoid()], dim=1)


def _branch(inputs: int, width: int, outputs: int) -> nn.Module:
    return nn.Sequential(ConvBlock(inputs, width, 3), ConvBlock(width, width, 3), nn.Conv2d(width, outputs, 1))


def _anchors(image: int) -> tuple[Tensor, Tensor]:
    """Centre of every cell in cells [2, anchors], and its stride in pixels [1, anchors]."""
    centres, strides = [], []
    for stride in STRIDES:
        axis = torch.arange(image // stride).float() + 0.5
        y, x = torch.meshgrid(axis, axis, indexing="ij")
        centres.append(torch.stack([x.flatten(), y.flatten()]))
        strides.append(torch.full((1, axis.numel() ** 2), float(stride)))
    return torch.cat(centres, dim=1), torch.cat(strides, dim=1)


class Detector(nn.Module):
    """The network: [B, 3, image, image] -> [B, 4 + classes, anchors]; 32 divides `image`."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        w1, w2, w3, w4, w5 = config.widths
        d2, d3, d4, d5 = config.depths
        self.stem = ConvBlock(3, w1, 3, 2)
        self.stage2 = nn.Sequential(ConvBlock(w1, w2, 3, 2), SplitStage(w2, w2, d2, residual=True))
        self.stage3 = nn.Sequential(ConvBlock(w2, w3, 3, 2), SplitStage(w3, w3, d3, residual=True))
        self.stage4 = nn.Sequential(ConvBlock(w3, w4, 3, 2), SplitStage(w4, w4, d4, residual=True))
        self.stage5 = nn.Sequential(ConvBlock(w4, w5, 3, 2), SplitStage(w5, w5, d5, residual=True), PyramidPooling(w5))
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.top4 = SplitStage(w5 + w4, w4, 1, residual=False)
        self.top3 = SplitStage(w4 + w3, w3, 1, residual=False)
        self.down4, self.bottom4 = ConvBlock(w3, w3, 3, 2), SplitStage(w3 + w4, w4, 1, residual=False)
        self.down5, self.bottom5 = ConvBlock(w4, w4, 3, 2), SplitStage(w4 + w5, w5, 1, residual=False)
        self.head = Head(config.image, (w3, w4, w5), config.classes)

    def forward(self, image: Tensor) -> Tensor:
        """Decoded predictions, before non-maximum suppression."""
        p3 = self.stage3(self.stage2(self.stem(image)))
        p4 = self.stage4(p3)
        p5 = self.stage5(p4)
        n4 = self.top4(torch.cat([self.up(p5), p4], dim=1))
        n3 = self.top3(torch.cat([self.up(n4), p3], dim=1))
        m4 = self.bottom4(torch.cat([self.down4(n3), n4], dim=1))
        m5 = self.bottom5(torch.cat([self.down5(m4), p5], dim=1))
        return self.head([n3, m4, m5])


def build(small: bool) -> Detector:
    """The nano size, or the small variant."""
    return Detector(SMALL if small else FULL)
