"""Read an ONNX file: check it, inline its functions, and keep its weights out of memory."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from smartmem_mlir.errors import InvalidModelError, UnsupportedModelError
from smartmem_mlir.ingress.onnx_model import structure
from smartmem_mlir.ingress.onnx_model.external import external_tensor
from smartmem_mlir.ingress.onnx_model.tensors import (
    Array,
    LazyTensor,
    TensorType,
    check_dims,
    numpy_type,
    read_span,
)
from smartmem_mlir.ingress.onnx_model.wire import Span, split

MIN_OPSET = 11
"""The oldest opset of the default domain that we import."""

_POSITIONS = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)

MAX_INLINE_FLOATS = 16
"""A floating-point initializer with more elements becomes a parameter."""

MAX_INLINE_BYTES = 1 << 16
"""An initializer of any type with more bytes becomes a parameter."""


MAX_TABLE_ELEMENTS = 1 << 18
"""A larger initializer of positions is not looked at; smaller ones are known at import, whatever they become."""


@dataclass(frozen=True)
class OnnxModel:
    """A model with its weights outside.

    Args:
        graph: The main graph: nodes in topological order, no initializers, no calls of local functions.
        opsets: Imported opset version by domain; the default domain is "".
        ir_version: The file's IR version.
        constants: The values of the small initializers, and of tables of positions.
        weights: The other initializers.
        file: Where the model came from, for errors.
    """

    graph: onnx.GraphProto
    opsets: Mapping[str, int]
    ir_version: int
    constants: Mapping[str, Array]
    weights: Mapping[str, LazyTensor]
    file: Path | None


def is_weight(tensor: TensorType) -> bool:
    """Whether a constant of this type becomes a parameter instead of a literal in the IR."""
    return (tensor.is_float and tensor.elements > MAX_INLINE_FLOATS) or tensor.nbytes > MAX_INLINE_BYTES


def is_unread(tensor: TensorType) -> bool:
    """Whether an initializer of this type is not read at import: weights are not, tables of positions are."""
    is_table = tensor.element_type in _POSITIONS and tensor.elements <= MAX_TABLE_ELEMENTS
    return is_weight(tensor) and not is_table


def read_file(path: Path) -> OnnxModel:
    """Read an ONNX file without reading its large weights.

    Raises:
        InvalidModelError: The file cannot be read or is not a consistent ONNX model.
        UnsupportedModelError: Its opset or something in it is not supported.
    """
    try:
        with path.open("rb") as stream:
            if stream.seek(0, 2) == 0:
                raise InvalidModelError("the file is empty", file=path)
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as data:
                parts = split(data)
    except OSError as error:
        raise InvalidModelError(f"cannot read the file: {error.strerror}", file=path) from error
    try:
        proto = onnx.ModelProto.FromString(parts.skeleton)
    except DecodeError as error:
        raise InvalidModelError(
            "not an ONNX model, or the file is truncated", hint="export or download it again", file=path
        ) from error
    return read_proto(proto, path, payloads=parts.payloads)


def read_proto(
    proto: onnx.ModelProto,
    file: Path | None,
    *,
    payloads: Mapping[int, Span] | None = None,
    weights: Mapping[str, LazyTensor] | None = None,
) -> OnnxModel:
    """Check a parsed model and take its initializers out.

    Args:
        proto: The model; it is changed.
        file: Its file, for errors and external data.
        payloads: Ranges of `file` that hold the data of `graph.initializer[index]`, where the proto lacks them.
        weights: Initializers whose values are elsewhere; the proto has no data for them either.
    """
    if not proto.graph.output:
        raise InvalidModelError("not an ONNX model: it has no graph with outputs", file=file)
    structure.check_text(proto, file)
    opsets = _check_opsets(proto, file)
    initializers = {id_: tensor for id_, tensor in enumerate(proto.graph.initializer)}
    structure.check_names(proto.graph, file)
    constants: dict[str, Array] = {}
    lazy: dict[str, LazyTensor] = dict(weights or {})
    for index, tensor in initializers.items():
        if tensor.name in lazy:
            continue
        value = _initializer(tensor, (payloads or {}).get(index), file)
        if isinstance(value, LazyTensor):
            lazy[tensor.name] = value
        else:
            constants[tensor.name] = value
    if proto.functions:
        proto = structure.inline_functions(proto, file)
    graph = proto.graph
    # Before IR version 4 every initializer was also an input; what has a value is not an argument.
    arguments = [i for i in graph.input if i.name not in constants and i.name not in lazy]
    del graph.input[:], graph.initializer[:]
    graph.input.extend(arguments)
    structure.sort_nodes(graph, {i.name for i in arguments} | constants.keys() | lazy.keys(), file)
    return OnnxModel(graph, opsets, proto.ir_version, constants, lazy, file)


def _check_opsets(proto: onnx.ModelProto, file: Path | None) -> dict[str, int]:
    opsets = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in proto.opset_import}
    version = opsets.get("")
    if version is None:
        raise InvalidModelError("the model imports no opset of the default domain", file=file)
    newest = onnx.defs.onnx_opset_version()
    if not MIN_OPSET <= version <= newest:
        raise UnsupportedModelError(
            f"opset {version} is not supported",
            hint=f"export with an opset from {MIN_OPSET} to {newest}, or use onnx.version_converter",
            file=file,
        )
    return opsets


def _initializer(tensor: onnx.TensorProto, span: Span | None, file: Path | None) -> Array | LazyTensor:
    """The value of an initializer: an array if it is small, else how to read it."""
    checked = check_dims(tensor.dims, tensor.data_type, file=file, node=tensor.name)
    numpy_type(tensor.data_type, file=file, node=tensor.name)
    lazy: LazyTensor | None = None
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        lazy = external_tensor(tensor, checked, file=file)
    elif span is not None:
        if span.length != checked.nbytes:
            raise _size_error(tensor, checked, span.length, file)
        assert file is not None
        lazy = LazyTensor(checked, partial(read_span, file, span.offset, checked, node=tensor.name))
    if lazy is not None:
        return lazy if is_unread(checked) else lazy.load()
    if not is_unread(checked):
        return inline_values(tensor, checked, file)
    _check_inline_size(tensor, checked, file)
    return LazyTensor(checked, partial(inline_values, tensor, checked, file))


def inline_values(tensor: onnx.TensorProto, checked: TensorType, file: Path | None) -> Array:
    """The values of a tensor that holds its own data.

    Raises:
        InvalidModelError: The number of values differs from what the shape says.
    """
    _check_inline_size(tensor, checked, file)
    values = onnx.numpy_helper.to_array(tensor)
    return np.ascontiguousarray(values).reshape(checked.shape)


def _check_inline_size(tensor: onnx.TensorProto, checked: TensorType, file: Path | None) -> None:
    if tensor.HasField("raw_data"):
        if len(tensor.raw_data) != checked.nbytes:
            raise _size_error(tensor, checked, len(tensor.raw_data), file)
        return
    field = onnx.helper.tensor_dtype_to_field(tensor.data_type)
    count = len(getattr(tensor, field))
    if count != prod(checked.shape):
        raise InvalidModelError(
            f"tensor has {count} values, but its shape {list(checked.shape)} needs {prod(checked.shape)}",
            file=file,
            node=tensor.name,
        )


def _size_error(tensor: onnx.TensorProto, checked: TensorType, found: int, file: Path | None) -> InvalidModelError:
    return InvalidModelError(
        f"tensor has {found} bytes of data, but its shape and type ({checked}) need {checked.nbytes}",
        file=file,
        node=tensor.name,
    )
