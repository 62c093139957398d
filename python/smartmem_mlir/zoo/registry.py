"""Find a model and build it in PyTorch."""

from __future__ import annotations

import importlib
from difflib import get_close_matches
from typing import Any

from smartmem_mlir.errors import OptionError
from smartmem_mlir.zoo.card import ModelCard
from smartmem_mlir.zoo.cards import CARDS
from smartmem_mlir.zoo.environment import require


def find(name: str) -> ModelCard:
    """The card of the model called `name`.

    Raises:
        OptionError: There is none; the message lists near matches.
    """
    if name in CARDS:
        return CARDS[name]
    lowered = name.lower()
    containing = [known for known in CARDS if lowered and (lowered in known or known in lowered)]
    near = list(dict.fromkeys([*containing, *get_close_matches(lowered, CARDS, n=3, cutoff=0.5)]))
    hint = f"did you mean {' or '.join(near)}?" if near else "`smartmem zoo list` names them all"
    raise OptionError(f"the zoo has no model named {name!r}", hint=hint)


def create(card: ModelCard, small: bool, device: str = "cpu") -> Any:
    """The model as a `torch.nn.Module` in inference mode, with its default initialisation.

    Args:
        card: Which model.
        small: Its small variant.
        device: Where its weights live; `meta` makes none, to count or to export without memory.

    Raises:
        MissingPackageError: A package it needs is absent.
    """
    require(("torch", *card.packages), card.name)
    import torch

    module, function = card.builder.split(":")
    builder = getattr(importlib.import_module(f"smartmem_mlir.zoo.models.{module}"), function)
    with torch.device(device):
        model = builder(small)
    return model.eval().requires_grad_(False)
