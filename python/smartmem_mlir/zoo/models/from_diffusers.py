# mypy: disallow-subclassing-any=False
"""The networks of Stable Diffusion 1.x (Rombach et al., CVPR 2022), as diffusers maintains them."""

from __future__ import annotations

from diffusers import AutoencoderKL, UNet2DConditionModel
from torch import Tensor, nn


class UNet(nn.Module):
    """One denoising step: latent [B, 4, h, w], time step [1], text states [B, 77, dim] -> noise [B, 4, h, w]."""

    def __init__(self, unet: UNet2DConditionModel) -> None:
        super().__init__()
        self.unet = unet

    def forward(self, sample: Tensor, timestep: Tensor, encoder_hidden_states: Tensor) -> Tensor:
        """The predicted noise."""
        return self.unet(sample, timestep, encoder_hidden_states, return_dict=False)[0]


class VaeDecoder(nn.Module):
    """Latent [B, 4, h, w] -> image [B, 3, 8h, 8w]."""

    def __init__(self, vae: AutoencoderKL) -> None:
        super().__init__()
        self.post_quant_conv, self.decoder = vae.post_quant_conv, vae.decoder

    def forward(self, latent: Tensor) -> Tensor:
        """The decoded image."""
        return self.decoder(self.post_quant_conv(latent))


def unet(small: bool) -> UNet:
    """The UNet of Stable Diffusion 1.x."""
    if not small:
        return UNet(UNet2DConditionModel(cross_attention_dim=768))
    return UNet(
        UNet2DConditionModel(
            block_out_channels=(32, 80),
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
            layers_per_block=1,
            cross_attention_dim=48,
            attention_head_dim=4,
            norm_num_groups=16,
        )
    )


def vae_decoder(small: bool) -> VaeDecoder:
    """The decoder of Stable Diffusion 1.x's autoencoder."""
    stages = 3 if small else 4
    return VaeDecoder(
        AutoencoderKL(
            block_out_channels=(32, 64, 96) if small else (128, 256, 512, 512),
            down_block_types=("DownEncoderBlock2D",) * stages,
            up_block_types=("UpDecoderBlock2D",) * stages,
            layers_per_block=1 if small else 2,
            latent_channels=4,
            norm_num_groups=16 if small else 32,
        )
    )
