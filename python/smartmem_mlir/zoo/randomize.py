"""Which random values each weight of a PyTorch model gets.

Pre-trained weights are not needed to test a compiler, default initialisations are not enough: timm zeroes the last
scale of a residual block, biases start at zero and norms at one, and an error in any of them would go unseen. Here
every parameter and buffer is drawn anew, with scales that keep activations near unit variance. BatchNorm, in
inference, does not normalise; its running statistics are drawn around the identity.
"""

from __future__ import annotations

from math import prod
from typing import Any

from smartmem_mlir.zoo.draw import Draw, spread

DEFAULT_SEED = 0

_NORMS = ("BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "RmsNorm", "RMSNorm", "NormAct")
_NORM_RANGES = {
    "weight": (0.6, 1.4),
    "bias": (-0.2, 0.2),
    "running_mean": (-0.2, 0.2),
    "running_var": (0.6, 1.4),
}
_SCALES = ("gamma", "scale", "lambda", "temperature")
_POSITION_GAIN = 0.1
"""Variance gain of a residual convolutional position encoding: at 1 each block would double the variance, and after
thirty blocks nothing but these convolutions would show in the output."""


def draws(module: Any, seed: int = DEFAULT_SEED, gain: float = 1.0) -> dict[str, Draw]:
    """The distribution of every floating-point parameter and persistent buffer, by its qualified name.

    Shared tensors (tied embeddings) appear once, under their first name.

    Args:
        module: A `torch.nn.Module`, on any device (`meta` is enough).
        seed: Seed of the model.
        gain: How much a contraction multiplies the variance of its input. 1 suits normalised and residual networks;
            2 a long chain of activations without either, each of which halves the second moment.
    """
    result: dict[str, Draw] = {}
    for prefix, part in module.named_modules():
        kind = type(part).__name__
        named = [*part.named_parameters(recurse=False), *part.named_buffers(recurse=False)]
        for name, tensor in named:
            if tensor is None or not tensor.is_floating_point() or name in part._non_persistent_buffers_set:
                continue
            key = f"{prefix}.{name}" if prefix else name
            part_gain = gain * _POSITION_GAIN if prefix.endswith("position") and "Conv" in kind else gain
            low, high = _bounds(kind, name, tuple(tensor.shape), part_gain, bool(getattr(part, "transposed", False)))
            result[key] = Draw(key, tuple(tensor.shape), low, high, seed)
    aliases = _aliases(module)
    return {key: draw for key, draw in result.items() if aliases.get(key, key) == key}


def randomize(module: Any, seed: int = DEFAULT_SEED, gain: float = 1.0) -> dict[str, Draw]:
    """Overwrite the weights of `module` in place with those of :func:`draws`, and return them.

    Args:
        module: A `torch.nn.Module` with real storage.
        seed: Seed of the model.
        gain: See :func:`draws`.
    """
    import torch

    chosen = draws(module, seed, gain)
    tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    with torch.no_grad():
        for key, draw in chosen.items():
            tensors[key].copy_(torch.from_numpy(draw.values()))
    return chosen


def _aliases(module: Any) -> dict[str, str]:
    """Each parameter's qualified name -> the first name of the same tensor."""
    first: dict[int, str] = {}
    return {
        name: first.setdefault(id(tensor), name) for name, tensor in module.named_parameters(remove_duplicate=False)
    }


def _bounds(kind: str, name: str, shape: tuple[int, ...], gain: float, transposed: bool = False) -> tuple[float, float]:
    """Bounds by the role of the tensor: `kind` is its module's class, `name` its name there."""
    if any(norm in kind for norm in _NORMS) and name in _NORM_RANGES:
        return _NORM_RANGES[name]
    if name == "weight" and "Embedding" in kind:
        return spread(0.5)
    if name == "bias":
        return -0.1, 0.1
    if name == "weight" and len(shape) >= 2:
        fan_in = shape[0] if transposed else prod(shape[1:])
        return spread((gain / fan_in) ** 0.5)
    if any(word in name for word in _SCALES):
        return 0.2, 0.6
    # Position tables, class tokens, biases of attention scores: large enough to matter.
    return spread(0.3)
