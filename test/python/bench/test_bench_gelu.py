"""GELU is put back together before PyTorch's converters see a model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from bench_onnx import save
from onnx import TensorProto, helper, numpy_helper

SHARED = Path(__file__).resolve().parents[3] / "benchmarks" / "peers" / "shared"

_ERF = [helper.make_node("Erf", ["s"], ["e"]), helper.make_node("Add", ["e", "one"], ["a"])]
_SCALE = {
    "multiplied": helper.make_node("Mul", ["x", "root_half"], ["s"]),
    "divided": helper.make_node("Div", ["x", "root_two"], ["s"]),
}
_END = {
    "x then half": [helper.make_node("Mul", ["x", "a"], ["m"]), helper.make_node("Mul", ["m", "half"], ["y"])],
    "half then x": [helper.make_node("Mul", ["a", "half"], ["m"]), helper.make_node("Mul", ["m", "x"], ["y"])],
    "half of x": [helper.make_node("Mul", ["x", "half"], ["h"]), helper.make_node("Mul", ["h", "a"], ["y"])],
}
_CONSTANTS = {
    "one": np.float32(1.0),
    "half": np.float32(0.5),
    "third": np.float32(1 / 3),
    "root_half": np.float32(2**-0.5),
    "root_two": np.float32(2**0.5),
}


@pytest.fixture(autouse=True)
def shared_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(SHARED))
    yield
    sys.modules.pop("onnx_gelu", None)


def _model(path: Path, nodes: list[onnx.NodeProto], outputs: tuple[str, ...] = ("y",)) -> onnx.ModelProto:
    constants = {name: np.array(value) for name, value in _CONSTANTS.items()}
    shape = [4, 5]
    save(path, nodes, [("x", TensorProto.FLOAT, shape)], [(name, shape) for name in outputs], constants, opset=20)
    return onnx.load(path)


def _fused(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    from onnx_gelu import fuse_gelu

    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    nodes: list[onnx.NodeProto] = fuse_gelu(model.graph, constants)
    return nodes


@pytest.mark.parametrize("scale", _SCALE)
@pytest.mark.parametrize("end", _END)
def test_every_spelling_becomes_one_node_of_equal_value(tmp_path: Path, scale: str, end: str) -> None:
    model = _model(tmp_path / "m.onnx", [_SCALE[scale], *_ERF, *_END[end]])
    x = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
    wanted = ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    nodes = _fused(model)
    assert "Gelu" in [node.op_type for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    got = ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)


def _product(*operands: tuple[str, str]) -> list[onnx.NodeProto]:
    """Products of pairs of values, chained to `y`."""
    names = ["m", "y"]
    return [helper.make_node("Mul", list(pair), [name]) for pair, name in zip(operands, names, strict=True)]


_LOOKALIKES = {
    "another factor": [_SCALE["multiplied"], *_ERF, *_product(("x", "a"), ("m", "third"))],
    "another scale": [helper.make_node("Mul", ["x", "half"], ["s"]), *_ERF, *_END["x then half"]],
    "divided by the inverse": [helper.make_node("Div", ["x", "root_half"], ["s"]), *_ERF, *_END["x then half"]],
    "another product": [
        helper.make_node("Neg", ["x"], ["z"]),
        _SCALE["divided"],
        *_ERF,
        *_product(("z", "a"), ("m", "half")),
    ],
    "erf alone": [_SCALE["divided"], helper.make_node("Erf", ["s"], ["y"])],
}


@pytest.mark.parametrize("nodes", _LOOKALIKES.values(), ids=_LOOKALIKES)
def test_what_only_looks_like_gelu_is_left_alone(tmp_path: Path, nodes: list[onnx.NodeProto]) -> None:
    assert "Gelu" not in [node.op_type for node in _fused(_model(tmp_path / "m.onnx", nodes))]


def test_a_part_that_is_used_elsewhere_stays(tmp_path: Path) -> None:
    model = _model(tmp_path / "m.onnx", [_SCALE["divided"], *_ERF, *_END["x then half"]], outputs=("y", "m"))
    assert "Gelu" not in [node.op_type for node in _fused(model)]
