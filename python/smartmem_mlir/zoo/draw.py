"""Random tensors that anybody can make again from a few numbers, with NumPy alone.

A weight of the zoo is never stored: it is a :class:`Draw`, so that a committed graph, a benchmark on another machine
and PyTorch all see the same values. Only the raw bits of PCG64 are used, whose stream NumPy guarantees (unlike the
streams of `Generator.normal`), and the distribution is uniform, so that no libm enters.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

_MANTISSA = 24
_CHUNK = 1 << 22
"""Elements drawn at a time: even, so that chunks do not show in the stream."""


@dataclass(frozen=True)
class Draw:
    """Uniform values in [low, high), a pure function of (seed, key, shape).

    Args:
        key: Name of the stream; two tensors with the same key and seed are equal.
        shape: Extents, row-major.
        low: Smallest value.
        high: Upper bound; reached by no integer, and by a float only through rounding.
        seed: Seed of the whole model.
        dtype: NumPy name of the element type: `float32`, or an integer type.
    """

    key: str
    shape: tuple[int, ...]
    low: float
    high: float
    seed: int = 0
    dtype: str = "float32"

    def values(self) -> npt.NDArray[np.generic]:
        """The tensor, C-contiguous."""
        count = prod(self.shape)
        unit = _uniform(self.seed, self.key, count)
        if np.issubdtype(np.dtype(self.dtype), np.integer):
            scaled = np.floor(self.low + unit.astype(np.float64) * (self.high - self.low))
            return scaled.astype(self.dtype).reshape(self.shape)
        # In place: the largest weights of the zoo have 10^8 elements.
        unit *= np.float32(self.high - self.low)
        unit += np.float32(self.low)
        return unit.reshape(self.shape).astype(self.dtype, copy=False)


def _uniform(seed: int, key: str, count: int) -> npt.NDArray[np.float32]:
    """`count` float32 values in [0, 1) that fill the 24-bit mantissa."""
    digest = hashlib.sha256(f"{seed}/{key}".encode()).digest()
    source = np.random.PCG64(int.from_bytes(digest[:16], "little"))
    unit = np.empty(count, np.float32)
    for start in range(0, count, _CHUNK):
        part = unit[start : start + _CHUNK]
        raw = np.asarray(source.random_raw((len(part) + 1) // 2))
        # Little-endian on every machine, so that the order of the two halves does not depend on the host.
        bits = raw.astype("<u8", copy=False).view("<u4")[: len(part)]
        part[:] = bits >> np.uint32(32 - _MANTISSA)
    unit *= np.float32(2.0**-_MANTISSA)
    return unit


def spread(std: float, mean: float = 0.0) -> tuple[float, float]:
    """Bounds (low, high) of the uniform distribution with this mean and standard deviation."""
    half = std * 3.0**0.5
    return mean - half, mean + half
