"""Split an ONNX file into a small skeleton and the byte ranges of its weights.

Parsing a protobuf copies every weight, and reading a weight from the parsed message copies it again. The wire
format is a sequence of (field number, length, payload), so the weights' payloads can be found and left in the file
without parsing: what remains is a valid model of a few hundred kilobytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

# Field numbers of onnx.proto, which are part of the format and never change.
_MODEL_GRAPH = 7
_GRAPH_INITIALIZER = 5
_TENSOR_RAW_DATA = 9

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5

MIN_PAYLOAD = 1024
"""Payloads shorter than this many bytes stay in the skeleton."""


@dataclass(frozen=True)
class Span:
    """A range of bytes of the model's file."""

    offset: int
    length: int


@dataclass(frozen=True)
class SplitModel:
    """The result of `split`.

    Args:
        skeleton: A serialized ModelProto without the large payloads.
        payloads: Where the payload of `graph.initializer[index]` lies, for those that were left out.
    """

    skeleton: bytes
    payloads: dict[int, Span]


class _MalformedError(Exception):
    """The bytes are not a sequence of protobuf fields."""


@dataclass(frozen=True)
class _Field:
    number: int
    wire_type: int
    start: int  # of the tag
    payload: int  # of the value
    end: int


def split(data: memoryview) -> SplitModel:
    """Leave the large `raw_data` payloads of the main graph's initializers out of a serialized model.

    Bytes that are not well-formed come back whole, with no payloads: the protobuf parser then says what is wrong.

    Args:
        data: A whole serialized ModelProto.
    """
    try:
        graphs = [f for f in _fields(data, 0, len(data)) if f.number == _MODEL_GRAPH]
        if len(graphs) != 1 or graphs[0].wire_type != _LENGTH:
            return SplitModel(bytes(data), {})
        graph, payloads = _strip_graph(data, graphs[0])
    except _MalformedError:
        return SplitModel(bytes(data), {})
    pieces = [bytes(data[: graphs[0].start]), _length_field(_MODEL_GRAPH, graph), bytes(data[graphs[0].end :])]
    return SplitModel(b"".join(pieces), payloads)


def _strip_graph(data: memoryview, graph: _Field) -> tuple[bytes, dict[int, Span]]:
    pieces: list[bytes] = []
    payloads: dict[int, Span] = {}
    index = 0
    for item in _fields(data, graph.payload, graph.end):
        if item.number != _GRAPH_INITIALIZER:
            pieces.append(bytes(data[item.start : item.end]))
            continue
        if item.end - item.payload < MIN_PAYLOAD:
            pieces.append(bytes(data[item.start : item.end]))
        else:
            tensor, span = _strip_tensor(data, item)
            pieces.append(_length_field(_GRAPH_INITIALIZER, tensor))
            if span is not None:
                payloads[index] = span
        index += 1
    return b"".join(pieces), payloads


def _strip_tensor(data: memoryview, tensor: _Field) -> tuple[bytes, Span | None]:
    pieces: list[bytes] = []
    span: Span | None = None
    for item in _fields(data, tensor.payload, tensor.end):
        length = item.end - item.payload
        if item.number == _TENSOR_RAW_DATA and item.wire_type == _LENGTH and length >= MIN_PAYLOAD:
            if span is not None:
                raise _MalformedError  # a second payload would replace the first: leave this to the parser
            span = Span(item.payload, length)
        else:
            pieces.append(bytes(data[item.start : item.end]))
    return b"".join(pieces), span


def _fields(data: memoryview, position: int, end: int) -> Iterator[_Field]:
    while position < end:
        start = position
        tag, position = _varint(data, position, end)
        number, wire_type = tag >> 3, tag & 7
        payload = position
        if wire_type == _VARINT:
            _, position = _varint(data, position, end)
        elif wire_type == _FIXED64:
            position += 8
        elif wire_type == _LENGTH:
            length, payload = _varint(data, position, end)
            position = payload + length
        elif wire_type == _FIXED32:
            position += 4
        else:
            raise _MalformedError
        if position > end:
            raise _MalformedError
        yield _Field(number, wire_type, start, payload, position)


def _varint(data: memoryview, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end and shift < 64:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise _MalformedError


def _length_field(number: int, payload: bytes) -> bytes:
    return _encode_varint(number << 3 | _LENGTH) + _encode_varint(len(payload)) + payload


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
