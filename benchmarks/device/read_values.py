"""What the kernels of `read_kernels` read, and what their sums must be, with NumPy alone."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

TILE, STRIDE = 64, 192
"""Texels of the grid's columns that move together, and how far a workgroup moves along x from pass to pass."""


@lru_cache(maxsize=1)
def grid(width: int, height: int, half: bool) -> npt.NDArray[np.generic]:
    """Texels of small whole numbers, whose sums are exact in f32."""
    values = np.random.default_rng(0).integers(0, 8, (height, width, 4))
    return values.astype(np.float16 if half else np.float32)


def sums(texels: npt.NDArray[np.generic], pattern: str, passes: int) -> npt.NDArray[np.float32]:
    """What each invocation adds up."""
    values = texels.astype(np.float32)
    if pattern == "window":
        rows = values + np.roll(values, 1, 0) + np.roll(values, -1, 0)
        values = rows + np.roll(rows, 1, 1) + np.roll(rows, -1, 1)
    height, width, lanes = values.shape
    columns = width // TILE
    # How often an invocation in one group of columns reads in another one.
    visits = np.zeros((columns, columns), np.float32)
    for number in range(passes):
        for column in range(columns):
            visits[column, (column + number * STRIDE // TILE) % columns] += 1
    moved = visits @ values.reshape(height, columns, TILE * lanes)
    return np.ascontiguousarray(moved.reshape(values.shape))
