"""Weights in files beside the model (ONNX external data), for models that come from strangers."""

from __future__ import annotations

from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath

import onnx

from smartmem_mlir.errors import InvalidModelError
from smartmem_mlir.ingress.onnx_model.tensors import LazyTensor, TensorType, read_span

_REFUSED = "models come from strangers, so external data is only read from the model's own directory"


def external_tensor(tensor: onnx.TensorProto, checked: TensorType, *, file: Path | None) -> LazyTensor:
    """The values that an external-data reference stands for; nothing is read yet.

    Args:
        tensor: An initializer with `data_location = EXTERNAL`.
        checked: Its element type and shape.
        file: The model's file; the data must lie in its directory.

    Raises:
        InvalidModelError: The data is missing, lies outside the model's directory (absolute path, `..`, or a
            symbolic link that leaves it), or its range does not fit the file or the tensor's size.
    """
    entries = {entry.key: entry.value for entry in tensor.external_data}
    data_file = _resolve(entries.get("location", ""), tensor.name, file)
    size = data_file.stat().st_size
    offset = _number(entries, "offset", 0, tensor.name, file)
    length = _number(entries, "length", checked.nbytes, tensor.name, file)
    if length != checked.nbytes:
        raise InvalidModelError(
            f"external data has {length} bytes, but shape and type ({checked}) need {checked.nbytes}",
            file=file,
            node=tensor.name,
        )
    if offset + length > size:
        raise InvalidModelError(
            f"external data at bytes {offset} to {offset + length} is out of range: {data_file.name} has {size}",
            hint="copy the whole data file again",
            file=file,
            node=tensor.name,
        )
    return LazyTensor(checked, partial(read_span, data_file, offset, checked, node=tensor.name))


def _resolve(location: str, name: str, file: Path | None) -> Path:
    if file is None:
        raise InvalidModelError("external data needs a model on disk", node=name)
    if not location or "\0" in location:
        raise InvalidModelError("external data has no location", file=file, node=name)
    # A path written on another system must be judged by that system's rules too.
    if PurePosixPath(location).is_absolute() or PureWindowsPath(location).anchor:
        raise InvalidModelError(
            f"external data has the absolute path {location!r}", hint=_REFUSED, file=file, node=name
        )
    directory = file.parent.resolve()
    try:
        data_file = (directory / location).resolve()
    except (OSError, RuntimeError) as error:  # a loop of symbolic links
        raise InvalidModelError(f"cannot resolve external data {location!r}", file=file, node=name) from error
    if not data_file.is_relative_to(directory):
        raise InvalidModelError(
            f"external data {location!r} leaves the model's directory", hint=_REFUSED, file=file, node=name
        )
    if not data_file.is_file():
        raise InvalidModelError(
            f"external data {location!r} is missing", hint=f"put it beside {file.name}", file=file, node=name
        )
    return data_file


def _number(entries: dict[str, str], key: str, default: int, name: str, file: Path | None) -> int:
    text = entries.get(key)
    if text is None or text == "":
        return default
    if not (text.isascii() and text.isdigit()):
        raise InvalidModelError(f"external data has {key} {text!r}, not a number of bytes", file=file, node=name)
    return int(text)
