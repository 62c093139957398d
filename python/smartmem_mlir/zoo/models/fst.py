# mypy: disallow-subclassing-any=False
"""Fast style transfer: Johnson et al., "Perceptual Losses for Real-Time Style Transfer", ECCV 2016.

The image transformation network, with the two amendments that its reimplementations share: instance normalisation
(Ulyanov et al., 2016) and upsampling followed by a convolution in place of a transposed one (Odena et al., 2016).
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn


@dataclass(frozen=True)
class Config:
    """Channels after each of the three convolutions, residual blocks."""

    widths: tuple[int, int, int]
    residuals: int


FULL = Config((32, 64, 128), 5)
SMALL = Config((24, 48, 100), 5)


class ConvNorm(nn.Module):
    """Reflection padding, convolution, instance normalisation."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.pad = nn.ReflectionPad2d(kernel // 2)
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride)
        self.norm = nn.InstanceNorm2d(outputs, affine=True)

    def forward(self, x: Tensor) -> Tensor:
        """[B, inputs, H, W] -> [B, outputs, H/stride, W/stride]."""
        return self.norm(self.conv(self.pad(x)))


class Residual(nn.Module):
    """Two 3x3 convolutions with a skip."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(ConvNorm(width, width, 3), nn.ReLU(), ConvNorm(width, width, 3))

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] -> [B, C, H, W]."""
        return x + self.layers(x)


class StyleTransfer(nn.Module):
    """The network: [B, 3, H, W] -> [B, 3, H, W]; 4 divides H and W."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        w1, w2, w3 = config.widths
        self.layers = nn.Sequential(
            ConvNorm(3, w1, 9),
            nn.ReLU(),
            ConvNorm(w1, w2, 3, stride=2),
            nn.ReLU(),
            ConvNorm(w2, w3, 3, stride=2),
            nn.ReLU(),
            *(Residual(w3) for _ in range(config.residuals)),
            nn.Upsample(scale_factor=2, mode="nearest"),
            ConvNorm(w3, w2, 3),
            nn.ReLU(),
            nn.Upsample(scale_factor=2, mode="nearest"),
            ConvNorm(w2, w1, 3),
            nn.ReLU(),
            nn.ReflectionPad2d(4),
            nn.Conv2d(w1, 3, 9),
        )

    def forward(self, image: Tensor) -> Tensor:
        """The styled image."""
        return self.layers(image)


def build(small: bool) -> StyleTransfer:
    """The published network, or its small variant."""
    return StyleTransfer(SMALL if small else FULL)
