"""Tensors of a model: their types, and values that are read only when asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto

from smartmem_mlir.errors import InvalidModelError, UnsupportedModelError
from smartmem_mlir.signature import MLIR_DTYPES

Array = npt.NDArray[Any]

NUMPY_TYPES: dict[int, np.dtype[Any]] = {
    TensorProto.DOUBLE: np.dtype(np.float64),
    TensorProto.FLOAT: np.dtype(np.float32),
    TensorProto.FLOAT16: np.dtype(np.float16),
    TensorProto.INT64: np.dtype(np.int64),
    TensorProto.INT32: np.dtype(np.int32),
    TensorProto.INT16: np.dtype(np.int16),
    TensorProto.INT8: np.dtype(np.int8),
    TensorProto.UINT8: np.dtype(np.uint8),
    TensorProto.BOOL: np.dtype(np.bool_),
}
"""Element types that may cross the model's boundary or be a weight."""

_CONSTANT_TYPES = NUMPY_TYPES | {
    TensorProto.UINT16: np.dtype(np.uint16),
    TensorProto.UINT32: np.dtype(np.uint32),
    TensorProto.UINT64: np.dtype(np.uint64),
}

FLOAT_TYPES = frozenset({TensorProto.DOUBLE, TensorProto.FLOAT, TensorProto.FLOAT16})

MAX_TENSOR_BYTES = 1 << 35
"""No tensor of a model that runs on one device is larger (32 GiB); a larger one is a damaged or hostile shape."""


def element_type_name(element_type: int) -> str:
    """ONNX's name of an element type, lower case (`float16`); a number that ONNX does not define stays one."""
    try:
        return str(TensorProto.DataType.Name(element_type)).lower()
    except ValueError:
        return f"type {element_type}"


@dataclass(frozen=True)
class TensorType:
    """Element type (a value of `onnx.TensorProto.DataType`) and static shape."""

    element_type: int
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes; element types that NumPy lacks count as one byte."""
        dtype = _CONSTANT_TYPES.get(self.element_type)
        return self.elements * (dtype.itemsize if dtype else 1)

    @property
    def is_float(self) -> bool:
        """Whether the elements are f64, f32 or f16."""
        return self.element_type in FLOAT_TYPES

    @property
    def mlir_dtype(self) -> str:
        """MLIR's name of the element type, as in :class:`smartmem_mlir.signature.TensorSpec`."""
        return MLIR_DTYPES[NUMPY_TYPES[self.element_type]]

    def proto(self) -> onnx.TypeProto:
        """The type as ONNX writes it."""
        return onnx.helper.make_tensor_type_proto(self.element_type, list(self.shape))

    def __str__(self) -> str:
        return "x".join([*map(str, self.shape), element_type_name(self.element_type)])


@dataclass(frozen=True)
class LazyTensor:
    """A tensor whose values are outside the graph.

    Args:
        type: Element type and shape.
        load: Reads the values; called at most once per consumer, never while the graph is processed.
    """

    type: TensorType
    load: Callable[[], Array]


def type_of(array: Array) -> TensorType:
    """The type of a NumPy array that holds a constant."""
    return TensorType(onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def check_dims(dims: Sequence[int], element_type: int, *, file: Path | None, node: str) -> TensorType:
    """Make a type of dims read from a file.

    Raises:
        InvalidModelError: A dim is negative, or the tensor is larger than `MAX_TENSOR_BYTES`.
    """
    if any(d < 0 for d in dims):
        raise InvalidModelError(f"negative dimension in shape {list(dims)}", file=file, node=node)
    checked = TensorType(element_type, tuple(dims))
    if checked.nbytes > MAX_TENSOR_BYTES:
        raise InvalidModelError(
            f"shape {list(dims)} asks for {checked.nbytes / 2**30:,.0f} GiB",
            hint=f"no tensor may be larger than {MAX_TENSOR_BYTES >> 30} GiB",
            file=file,
            node=node,
        )
    return checked


def numpy_type(element_type: int, *, file: Path | None, node: str) -> np.dtype[Any]:
    """The NumPy dtype of a constant or weight.

    Raises:
        UnsupportedModelError: The element type is one that this compiler does not carry (bfloat16, float8,
            4-bit, complex, string).
    """
    dtype = _CONSTANT_TYPES.get(element_type)
    if dtype is None:
        raise UnsupportedModelError(
            f"element type {element_type_name(element_type)} is not supported",
            hint="convert the model to float32 or float16",
            file=file,
            node=node,
        )
    return dtype


def read_span(path: Path, offset: int, tensor: TensorType, *, node: str) -> Array:
    """Read a little-endian row-major tensor from a file.

    Args:
        path: The file.
        offset: Where the tensor starts, in bytes.
        tensor: What lies there.
        node: The tensor's name, for the error.

    Raises:
        InvalidModelError: The file has become shorter or unreadable since it was checked.
    """
    dtype = numpy_type(tensor.element_type, file=path, node=node)
    try:
        values = np.fromfile(path, dtype=dtype.newbyteorder("<"), count=tensor.elements, offset=offset)
    except OSError as error:
        raise InvalidModelError(f"cannot read the values: {error.strerror}", file=path, node=node) from error
    if values.size != tensor.elements:
        raise InvalidModelError("the file changed while it was read", file=path, node=node)
    return values.astype(dtype, copy=False).reshape(tensor.shape)
