"""Weights that any machine can make again: normal values from a seed that is the weight's name.

A module of half a megabyte travels easily, its weights of hundreds do not. `reseed` gives a model such weights, with
the mean and deviation of those it had, and returns what `make` needs to make them elsewhere.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

LARGE = 64
"""Weights of more elements are reseeded; smaller ones travel as they are."""

Recipe = Mapping[str, tuple[tuple[int, ...], float, float]]
"""Shape, mean and standard deviation by name."""


def make(name: str, shape: tuple[int, ...], mean: float, deviation: float) -> npt.NDArray[np.float32]:
    """The values of one weight."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return (rng.standard_normal(shape) * deviation + mean).astype(np.float32)


def reseed(model: Any) -> dict[str, tuple[tuple[int, ...], float, float]]:
    """Replaces the large f32 initializers of an ONNX model in place; constant ones keep their values."""
    from onnx import numpy_helper

    recipe = {}
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype != np.float32 or values.size <= LARGE:
            continue
        deviation = values.astype(np.float64).std()
        # A mask of -inf, or of the least number, is no weight.
        if deviation == 0 or not np.isfinite(deviation) or deviation > np.sqrt(np.finfo(np.float32).max):
            continue
        entry = (tuple(values.shape), float(values.mean()), float(values.std()))
        tensor.CopyFrom(numpy_helper.from_array(make(tensor.name, *entry), tensor.name))
        recipe[tensor.name] = entry
    return recipe
