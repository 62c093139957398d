"""Splitting a serialized model into a skeleton and payloads."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx_cases import model, value

from smartmem_mlir.ingress.onnx_model.wire import MIN_PAYLOAD, split

LARGE = np.arange(MIN_PAYLOAD, dtype=np.float32)
SMALL = np.arange(3, dtype=np.float32)


def whole() -> bytes:
    nodes = [onnx.helper.make_node("Concat", ["a", "b", "c", "x"], ["y"], axis=0)]
    return model(nodes, [value("x", [4])], ["y"], {"a": LARGE, "b": SMALL, "c": LARGE * 2}).SerializeToString()


def test_only_large_payloads_leave_and_all_else_stays() -> None:
    data = whole()
    parts = split(memoryview(data))
    assert sorted(parts.payloads) == [0, 2]
    assert len(parts.skeleton) < len(data) - 2 * LARGE.nbytes + 64
    skeleton = onnx.ModelProto.FromString(parts.skeleton)
    for index, span in parts.payloads.items():
        tensor = skeleton.graph.initializer[index]
        assert not tensor.HasField("raw_data")
        tensor.raw_data = data[span.offset : span.offset + span.length]
    assert skeleton == onnx.ModelProto.FromString(data)


def test_payloads_lie_where_the_spans_say() -> None:
    data = whole()
    span = split(memoryview(data)).payloads[2]
    np.testing.assert_array_equal(np.frombuffer(data, np.float32, LARGE.size, span.offset), LARGE * 2)


@pytest.mark.parametrize("cut", [1, 5, 100, 5000])
def test_malformed_bytes_come_back_whole(cut: int) -> None:
    data = whole()[:-cut]
    assert split(memoryview(data)).skeleton == data


def test_a_payload_given_twice_is_left_to_the_parser() -> None:
    proto = onnx.ModelProto.FromString(whole())
    tensor = numpy_helper.from_array(LARGE, "a").SerializeToString()
    again = onnx.TensorProto(raw_data=(LARGE * 3).tobytes()).SerializeToString()
    proto.graph.initializer[0].ParseFromString(tensor + again)
    merged = tensor + again

    def field(number: int, payload: bytes) -> bytes:
        size, encoded = len(payload), b""
        while size >= 0x80:
            encoded += bytes([size & 0x7F | 0x80])
            size >>= 7
        return bytes([number << 3 | 2]) + encoded + bytes([size]) + payload

    data = field(7, field(5, merged))
    assert split(memoryview(data)).skeleton == data
