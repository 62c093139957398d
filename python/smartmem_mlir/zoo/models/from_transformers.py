# mypy: disallow-subclassing-any=False
"""The networks that Hugging Face transformers maintains."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import CLIPTextConfig, CLIPTextModel, GPTNeoXConfig, GPTNeoXForCausalLM

TOKENS = 128
"""Prompt length at full size: the one whose MACs are the paper's."""
SMALL_TOKENS = 33


class TextEncoder(nn.Module):
    """CLIP's text transformer: token ids [B, 77] -> hidden states [B, 77, dim]."""

    def __init__(self, config: CLIPTextConfig) -> None:
        super().__init__()
        self.clip = CLIPTextModel(config)

    def forward(self, input_ids: Tensor) -> Tensor:
        """The last hidden states, which condition the UNet."""
        return self.clip(input_ids=input_ids).last_hidden_state


class LanguageModel(nn.Module):
    """GPT-NeoX over a whole prompt, without a cache: token ids [B, T] -> scores [B, T, vocabulary].

    The causal mask is a constant of ours: transformers builds one from the data, which cannot be traced statically.
    """

    def __init__(self, config: GPTNeoXConfig, tokens: int) -> None:
        super().__init__()
        self.neox = GPTNeoXForCausalLM(config)
        mask = torch.full((1, 1, tokens, tokens), torch.finfo(torch.float32).min).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, input_ids: Tensor) -> Tensor:
        """Scores of the next token at every position."""
        return self.neox(input_ids=input_ids, attention_mask=self.mask, use_cache=False).logits


def text_encoder(small: bool) -> TextEncoder:
    """The text tower of CLIP ViT-L/14, as in Stable Diffusion 1.x."""
    if small:
        config = CLIPTextConfig(
            vocab_size=1000,
            hidden_size=160,
            intermediate_size=640,
            num_hidden_layers=3,
            num_attention_heads=5,
            max_position_embeddings=77,
            bos_token_id=998,
            eos_token_id=999,
        )
    else:
        config = CLIPTextConfig(
            vocab_size=49408,
            hidden_size=768,
            intermediate_size=3072,
            num_hidden_layers=12,
            num_attention_heads=12,
            max_position_embeddings=77,
        )
    return TextEncoder(config)


def pythia_1b(small: bool) -> LanguageModel:
    """Pythia-1B."""
    return _pythia(160, 640, 4, 4, 1000, SMALL_TOKENS) if small else _pythia(2048, 8192, 16, 8, 50304, TOKENS)


def pythia_70m(small: bool) -> LanguageModel:
    """Pythia-70M; the small variant is that of Pythia-1B."""
    return _pythia(160, 640, 4, 4, 1000, SMALL_TOKENS) if small else _pythia(512, 2048, 6, 8, 50304, TOKENS)


def _pythia(dim: int, hidden: int, depth: int, heads: int, vocabulary: int, tokens: int) -> LanguageModel:
    """Parallel attention and MLP, rotary positions on a quarter of each head."""
    return LanguageModel(
        GPTNeoXConfig(
            vocab_size=vocabulary,
            hidden_size=dim,
            intermediate_size=hidden,
            num_hidden_layers=depth,
            num_attention_heads=heads,
            rotary_pct=0.25,
            max_position_embeddings=2048,
            use_parallel_residual=True,
        ),
        tokens,
    )
