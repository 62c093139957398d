"""Compiled models are callables; example inputs give sizes and are checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import smartmem_mlir as sm
from smartmem_mlir.errors import OptionError


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two inputs of a symbolic batch, two outputs: a + b, and a * b transposed."""
    a, b = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]) for name in ("a", "b"))
    total = helper.make_tensor_value_info("total", TensorProto.FLOAT, ["batch", 3])
    product = helper.make_tensor_value_info("product", TensorProto.FLOAT, [3, "batch"])
    nodes = [
        helper.make_node("Add", ["a", "b"], ["total"]),
        helper.make_node("Mul", ["a", "b"], ["square"]),
        helper.make_node("Transpose", ["square"], ["product"], perm=[1, 0]),
    ]
    graph = helper.make_graph(nodes, "pair", [a, b], [total, product])
    path = tmp_path_factory.mktemp("pair") / "pair.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.full((2, 3), 10, np.float32)


@pytest.fixture(scope="module")
def pair(model: Path, tmp_path_factory: pytest.TempPathFactory) -> sm.CompiledModel:
    return sm.compile(model, tmp_path_factory.mktemp("out") / "pair", example_inputs=(A, B), target="cpu")


def test_example_inputs_give_the_sizes(pair: sm.CompiledModel) -> None:
    assert [info.shape for info in pair.report.inputs] == [(2, 3), (2, 3)]


def test_calls_in_order_by_name_and_by_mapping(pair: sm.CompiledModel) -> None:
    for total, product in (pair(A, B), pair(b=B, a=A), pair({"b": B, "a": A})):
        np.testing.assert_array_equal(total, A + B)
        np.testing.assert_array_equal(product, (A * B).T)


def test_what_does_not_fit_is_refused(pair: sm.CompiledModel) -> None:
    with pytest.raises(OptionError, match=r"a: expected 2x3xf32, given 3x2xf32"):
        pair(A.T, B)
    with pytest.raises(OptionError, match=r"expected 2x3xf32, given 2x3xf64"):
        pair(A.astype(np.float64), B)
    with pytest.raises(OptionError, match="in order and by name"):
        pair(A, b=B)
    with pytest.raises(OptionError, match="a str is not an array of numbers"):
        pair("A", B)
    with pytest.raises(OptionError, match="1 inputs were given, the model takes 2"):
        pair(A)


def test_example_inputs_are_checked(model: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="1 example inputs were given, the model takes 2: a, b"):
        sm.compile(model, A)
    with pytest.raises(OptionError, match="expected 2x3xf32, given 2x3xf64"):
        sm.compile(model, tmp_path / "out", example_inputs=(A.astype(np.float64), B))
    with pytest.raises(OptionError, match=r"the model fixes this dimension to 3"):
        sm.compile(model, tmp_path / "out", example_inputs=(A[:, :2], B[:, :2]))
    assert not (tmp_path / "out").exists()


def test_output_and_examples_are_told_apart(model: Path) -> None:
    with pytest.raises(OptionError, match="the output is a tuple, not a path"):
        sm.compile(model, (A, B), example_inputs=(A, B))
