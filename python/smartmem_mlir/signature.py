"""The shape and element type of a model's inputs, outputs and weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

# MLIR element type -> NumPy dtype. bf16 is absent on purpose: NumPy has no such type and no path here needs it.
NUMPY_DTYPES: dict[str, np.dtype[np.generic]] = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "i64": np.dtype(np.int64),
    "i32": np.dtype(np.int32),
    "i16": np.dtype(np.int16),
    "i8": np.dtype(np.int8),
    "ui8": np.dtype(np.uint8),
    "i1": np.dtype(np.bool_),
}
MLIR_DTYPES = {dtype: name for name, dtype in NUMPY_DTYPES.items()}


@dataclass(frozen=True)
class TensorSpec:
    """A tensor at the model's boundary: its name in the source model, static shape and MLIR element type."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def numpy_dtype(self) -> np.dtype[np.generic]:
        """The NumPy dtype of the elements."""
        return NUMPY_DTYPES[self.dtype]

    @property
    def elements(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes, dense and row-major."""
        return self.elements * self.numpy_dtype.itemsize

    def __str__(self) -> str:
        return f"{self.name}: {'x'.join(map(str, (*self.shape, self.dtype)))}"


@dataclass(frozen=True)
class Parameter:
    """A weight that stays outside the IR: `smartmem.parameter @name` stands for it there.

    Args:
        spec: Name (the key in `params.irpa`), shape and element type.
        load: Returns the values, C-contiguous. Called once, when the archive is written, so that no more than one
            weight at a time need be in memory beyond what the model file itself takes.
    """

    spec: TensorSpec
    load: Callable[[], npt.NDArray[np.generic]]
