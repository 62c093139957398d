"""ONNX graphs without weights, and how to put the weights back with NumPy alone.

A recipe is an ordinary ONNX file in which each large initializer is external, in a file that never exists
(:data:`LOCATION`), with one record that says how to compute it. Names, shapes and element types stay where ONNX keeps
them, so tools that do not load external data (`onnx.load(..., load_external_data=False)`, shape inference, viewers)
work on it. The small variants of the zoo are committed in this form; the billion-parameter ones pass through it so
that no more than one weight is ever in memory.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from smartmem_mlir.errors import InvalidModelError, OptionError
from smartmem_mlir.zoo.draw import Draw

if TYPE_CHECKING:
    import onnx

Array = npt.NDArray[Any]

LOCATION = "@smartmem-zoo"
"""The `location` of an initializer that has a record in place of bytes."""
METADATA_KEY = "smartmem.zoo"
"""Key of the model's metadata: which model, its test inputs, PyTorch's output on them."""
EXTERNAL_ALIGNMENT = 4096
"""Alignment of each weight in a data file, so that readers can map it."""
EXTERNAL_THRESHOLD = 1 << 10
"""Smallest weight, in bytes, that goes to the data file."""


@dataclass(frozen=True)
class Drawn:
    """A random tensor, transposed. The graph may see another shape of the same elements.

    Args:
        draw: The random tensor.
        permutation: Its axes in the order that the graph has them.
    """

    draw: Draw
    permutation: tuple[int, ...]

    def values(self) -> Array:
        """The elements, C-contiguous, in the transposed shape."""
        return np.ascontiguousarray(self.draw.values().transpose(self.permutation))


@dataclass(frozen=True)
class Folded:
    """A convolution's weight or bias with the BatchNorm behind it folded in, as exporters do.

    Args:
        part: Which of the two.
        weight: The convolution's weight, output channels first.
        bias: The convolution's bias, if it has one.
        scale: BatchNorm's weight.
        shift: BatchNorm's bias.
        mean: Its running mean.
        variance: Its running variance.
        epsilon: What is added to the variance.
    """

    part: str
    weight: Draw
    bias: Draw | None
    scale: Draw
    shift: Draw
    mean: Draw
    variance: Draw
    epsilon: float

    def values(self) -> Array:
        """Computed in double precision and rounded once."""
        scale = self.scale.values().astype(np.float64)
        factor = scale / np.sqrt(self.variance.values().astype(np.float64) + self.epsilon)
        if self.part == "weight":
            weight = self.weight.values().astype(np.float64)
            folded = weight * factor.reshape(-1, *(1,) * (weight.ndim - 1))
        else:
            bias = self.bias.values().astype(np.float64) if self.bias else 0.0
            mean, shift = (draw.values().astype(np.float64) for draw in (self.mean, self.shift))
            folded = (bias - mean) * factor + shift
        return np.asarray(folded, dtype=np.float32)


@dataclass(frozen=True)
class Literal:
    """Values that are not random: index tables, masks. Compressed, base64."""

    data: str
    dtype: str

    @staticmethod
    def of(values: Array) -> Literal:
        """The record of these values."""
        packed = zlib.compress(np.ascontiguousarray(values).tobytes(), 9)
        return Literal(base64.b64encode(packed).decode(), values.dtype.name)

    def values(self) -> Array:
        """The values, flat."""
        return np.frombuffer(zlib.decompress(base64.b64decode(self.data)), dtype=self.dtype)


Record = Drawn | Folded | Literal
_KINDS: dict[str, type[Drawn] | type[Folded] | type[Literal]] = {
    "drawn": Drawn,
    "folded": Folded,
    "literal": Literal,
}


def set_record(tensor: onnx.TensorProto, record: Record) -> None:
    """Replace the bytes of an initializer by its record."""
    import onnx

    kind = next(name for name, cls in _KINDS.items() if isinstance(record, cls))
    for field in ("raw_data", "float_data", "int32_data", "int64_data", "external_data"):
        tensor.ClearField(field)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    text = json.dumps({"kind": kind, **asdict(record)}, separators=(",", ":"))
    for key, value in (("location", LOCATION), ("record", text)):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value


def get_record(tensor: onnx.TensorProto) -> Record | None:
    """The record of an initializer; None where the file holds its values."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    if entries.get("location") != LOCATION:
        return None
    fields: dict[str, Any] = json.loads(entries["record"])
    cls = _KINDS[fields.pop("kind")]
    converted: dict[str, Any] = {
        key: _draw(value) if isinstance(value, dict) else value for key, value in fields.items()
    }
    if "permutation" in converted:
        converted["permutation"] = tuple(converted["permutation"])
    return cls(**converted)


def _draw(fields: dict[str, Any]) -> Draw:
    return Draw(**{**fields, "shape": tuple(fields["shape"])})


def values_of(tensor: onnx.TensorProto, file: Path | str | None = None) -> Array:
    """The values of an initializer of a recipe, in the shape that the graph gives it.

    Raises:
        InvalidModelError: The record does not make as many elements as the shape has.
    """
    from onnx import helper, numpy_helper

    record = get_record(tensor)
    if record is None:
        return numpy_helper.to_array(tensor)
    values = record.values()
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    if values.size != int(np.prod(tensor.dims)) or values.dtype != dtype:
        raise InvalidModelError(
            f"the record makes {values.dtype} {list(values.shape)}, the graph wants {dtype} {list(tensor.dims)}",
            file=file,
            node=tensor.name,
            hint="build the recipe again",
        )
    return values.reshape(tuple(tensor.dims))


def tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Everything of a model that holds weights: its initializers, and the values of its Constant nodes."""
    yield from model.graph.initializer
    for node in model.graph.node:
        if node.op_type == "Constant":
            yield from (attribute.t for attribute in node.attribute if attribute.HasField("t"))


def materialize(recipe: Path | str | onnx.ModelProto, out: Path | str, *, external: bool = False) -> None:
    """Write the model of a recipe with its weights. Needs neither torch nor network.

    Args:
        recipe: A recipe, as a file or in memory; one in memory is consumed.
        out: The ONNX file to write. It appears complete or not at all.
        external: Put the weights in `<out>.data` beside it, one at a time: models over 2 GB must, and need no more
            memory than their largest weight.

    Raises:
        InvalidModelError: The recipe is unreadable or inconsistent.
    """
    import onnx

    source = None if isinstance(recipe, onnx.ModelProto) else Path(recipe)
    model = recipe if isinstance(recipe, onnx.ModelProto) else load_recipe(recipe)
    out = Path(out)
    if not external:
        for tensor in tensors(model):
            _set_values(tensor, values_of(tensor, source))
        with replacing(out) as file:
            file.write(model.SerializeToString(deterministic=True))
        return
    data = out.with_name(out.name + ".data")
    # Both are whole before either takes its place.
    with replacing(out) as file, replacing(data) as stream:
        for tensor in tensors(model):
            _set_external(tensor, values_of(tensor, source), stream, data.name)
        file.write(model.SerializeToString(deterministic=True))


def load_recipe(file: Path | str) -> onnx.ModelProto:
    """Read a recipe.

    Raises:
        InvalidModelError: The file is absent or not ONNX.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        return onnx.load(str(file), load_external_data=False)
    except (OSError, DecodeError) as error:
        raise InvalidModelError(f"not a readable ONNX file ({error})", file=file) from error


def metadata(model: onnx.ModelProto) -> dict[str, Any]:
    """What :data:`METADATA_KEY` holds; empty for a model that is not from the zoo."""
    for entry in model.metadata_props:
        if entry.key == METADATA_KEY:
            found: dict[str, Any] = json.loads(entry.value)
            return found
    return {}


def _set_values(tensor: onnx.TensorProto, values: Array) -> None:
    from onnx import TensorProto, numpy_helper

    plain = numpy_helper.from_array(values, tensor.name)
    tensor.ClearField("data_location")
    tensor.CopyFrom(plain)
    assert tensor.data_location == TensorProto.DEFAULT


def _set_external(tensor: onnx.TensorProto, values: Array, stream: BinaryIO, location: str) -> None:
    from onnx import TensorProto

    if values.nbytes < EXTERNAL_THRESHOLD:
        _set_values(tensor, values)
        return
    stream.write(b"\0" * (-stream.tell() % EXTERNAL_ALIGNMENT))
    offset = stream.tell()
    stream.write(np.ascontiguousarray(values).data)
    for field in ("raw_data", "float_data", "int32_data", "int64_data", "external_data"):
        tensor.ClearField(field)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(values.nbytes))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when the block ends well, and is removed when it does not.

    Raises:
        OptionError: The folder cannot be written to, or the disk is full.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise OptionError("is a directory", file=path, hint="name a file to write")
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise OptionError(f"cannot be written: {error.strerror}", file=path, hint="choose another output") from error
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        # mkstemp makes files private; a model is as readable as any file the user writes.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except BaseException as error:
        os.unlink(name)
        if isinstance(error, OSError):
            raise OptionError(f"cannot be written: {error.strerror}", file=path) from error
        raise
