"""Weights to an IREE parameter archive (`.irpa`), one tensor in memory at a time.

`iree.runtime.ParameterIndex.create_archive_file` wants every tensor in memory (or in a second file) at once and
reports a full disk as UNKNOWN. The container, version 0 of `iree/schemas/parameter_archive.h`, is simple enough to
write as a stream: a header, a table of entries, the names, then the data at aligned offsets.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from smartmem_mlir.errors import InvalidModelError
from smartmem_mlir.signature import Parameter

SCOPE = "model"
"""Parameters are addressed as `"model"::"key"` in the module and `model=params.irpa` on IREE's command lines."""

_MAGIC = 0x41505249  # "IRPA"
_DATA_ENTRY = 2
_FILE_ALIGNMENT = 4096
_DATA_ALIGNMENT = 64
_ENTRY_ALIGNMENT = 16
# prefix: magic, major, minor, header size, next header, flags; then entry count and (offset, length) of three segments.
_HEADER = struct.Struct("<IHHQQQ Q QQ QQ QQ")
# entry size, type, flags, name (offset, length), metadata (offset, length), alignment, storage (offset, length).
_ENTRY = struct.Struct("<QIQ QQ QQ Q QQ")


@dataclass(frozen=True)
class ArchiveSummary:
    """What :func:`write_archive` wrote: number of tensors, their bytes, and the bytes of the file."""

    tensors: int
    data_bytes: int
    file_bytes: int


def write_archive(path: Path, parameters: Mapping[str, Parameter]) -> ArchiveSummary:
    """Write all parameters to `path`.

    Args:
        path: The file to create.
        parameters: The weights by key; each is loaded when its turn comes and dropped after it is written.

    Raises:
        InvalidModelError: A weight's values do not have the shape or type that its description says.
        OSError: The file cannot be written (disk full, no permission).
    """
    entry_stride = _align(_ENTRY.size, _ENTRY_ALIGNMENT)
    names = b"".join(key.encode() for key in parameters)
    entries_at = _align(_HEADER.size, _ENTRY_ALIGNMENT)
    names_at = entries_at + entry_stride * len(parameters)
    data_at = _align(names_at + len(names), _FILE_ALIGNMENT)

    table = bytearray()
    name_offset = data_offset = 0
    for key, parameter in parameters.items():
        name_size, nbytes = len(key.encode()), parameter.spec.nbytes
        data_offset = _align(data_offset, _DATA_ALIGNMENT)
        entry = _ENTRY.pack(
            _ENTRY.size, _DATA_ENTRY, 0, name_offset, name_size, 0, 0, _DATA_ALIGNMENT, data_offset, nbytes
        )
        table += entry.ljust(entry_stride, b"\0")
        name_offset += name_size
        data_offset += nbytes
    header = _HEADER.pack(
        _MAGIC, 0, 0, _HEADER.size, 0, 0, len(parameters), entries_at, len(table), names_at, len(names), data_at,
        data_offset,
    )  # fmt: skip
    file_bytes = _align(data_at + data_offset, _FILE_ALIGNMENT)

    total = sum(parameter.spec.nbytes for parameter in parameters.values())
    with path.open("wb") as stream:
        stream.write(header)
        _pad_to(stream, entries_at)
        stream.write(table)
        stream.write(names)
        _pad_to(stream, data_at)
        for key, parameter in parameters.items():
            _pad_to(stream, data_at + _align(stream.tell() - data_at, _DATA_ALIGNMENT))
            _write_values(stream, key, parameter)
        _pad_to(stream, file_bytes)
    return ArchiveSummary(tensors=len(parameters), data_bytes=total, file_bytes=file_bytes)


def _write_values(stream: BinaryIO, key: str, parameter: Parameter) -> None:
    spec, values = parameter.spec, parameter.load()
    if values.shape != spec.shape or values.dtype != spec.numpy_dtype:
        given = "x".join(map(str, (*values.shape, values.dtype)))
        raise InvalidModelError(f"the weight has the values of a {given}, expected {spec}", node=key)
    contiguous = np.ascontiguousarray(values)
    if contiguous.dtype.byteorder == ">":
        contiguous = contiguous.astype(contiguous.dtype.newbyteorder("<"))
    stream.write(contiguous.reshape(-1).view(np.uint8).data)


def _align(value: int, alignment: int) -> int:
    return (value + alignment - 1) // alignment * alignment


def _pad_to(stream: BinaryIO, offset: int) -> None:
    stream.write(b"\0" * (offset - stream.tell()))
