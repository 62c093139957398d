"""Parameters and multiply-accumulates, without weights: everything runs on PyTorch's meta device."""

from __future__ import annotations

from smartmem_mlir.zoo.card import ModelCard
from smartmem_mlir.zoo.registry import create
from smartmem_mlir.zoo.sizes import Size


def measure(card: ModelCard, small: bool) -> Size:
    """Count the model; takes seconds and little memory even for the billion-parameter ones."""
    module = create(card, small, device="meta")
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    inputs = [
        torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device="meta") for spec in card.input_specs(small)
    ]
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        module(*inputs)
    return Size(sum(parameter.numel() for parameter in module.parameters()), counter.get_total_flops() // 2)
