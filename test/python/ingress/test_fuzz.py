"""Damaged ONNX files give a SmartMemError or a model, never another exception and never a crash."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import forms
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from smartmem_mlir.errors import SmartMemError
from smartmem_mlir.ingress.model import ImportOptions
from smartmem_mlir.ingress.onnx_importer import static_graph
from smartmem_mlir.ingress.onnx_model.emit import emit_model, parameters_of
from smartmem_mlir.ingress.onnx_model.reader import read_file


def small_model() -> bytes:
    """A model with most of what the reader looks at: weights, shape arithmetic, an If, a function, attributes."""
    rng = np.random.default_rng(0)
    branch = helper.make_graph(
        [helper.make_node("Relu", ["r"], ["b"])], "branch", [], [helper.make_tensor_value_info("b", 1, [2, 8])]
    )
    function = helper.make_function(
        "local", "Twice", ["a"], ["c"], [helper.make_node("Add", ["a", "a"], ["c"])], [helper.make_opsetid("", 18)]
    )
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], name="fc"),
        helper.make_node("Twice", ["m"], ["t"], name="call", domain="local"),
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"], axis=0),
        helper.make_node("Concat", ["n", "minus"], ["target"], axis=0),
        helper.make_node("Reshape", ["t", "target"], ["r"]),
        helper.make_node("If", ["yes"], ["i"], then_branch=branch, else_branch=branch),
        helper.make_node("Transpose", ["i"], ["y"], perm=[1, 0]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, "batch"])],
        [
            numpy_helper.from_array(rng.standard_normal((64, 8)).astype(np.float32), "w"),
            numpy_helper.from_array(np.array([0]), "zero"),
            numpy_helper.from_array(np.array([-1]), "minus"),
            numpy_helper.from_array(np.array(True), "yes"),
        ],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=[function]).SerializeToString()


def import_bytes(path: Path, data: bytes) -> None:
    """Everything that runs in this process; values of weights are read too. The only error is a SmartMemError."""
    path.write_bytes(data)
    with suppress(SmartMemError):
        model = read_file(path)
        graph = static_graph(model, ImportOptions(dims={"batch": 2}))
        weights = parameters_of(graph)
        emit_model(graph, weights)
        for weight in weights.values():
            weight.load()


def test_the_undamaged_model_imports(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(small_model())
    graph = static_graph(read_file(path), ImportOptions(dims={"batch": 2}))
    assert [n.op_type for n in graph.nodes] == ["MatMul", "Add", "Relu", "Transpose"]  # the reshape is an identity


@pytest.mark.parametrize("seed", range(8))
def test_changed_bytes(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    whole = small_model()
    weights = whole.index(onnx.ModelProto.FromString(whole).graph.initializer[0].raw_data)
    interesting = [i for i in range(len(whole)) if not weights <= i < weights + 2048]
    for _ in range(150):
        damaged = bytearray(whole)
        for position in rng.sample(interesting, rng.choice([1, 1, 2, 5])):
            damaged[position] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256), damaged[position] ^ 1])
        import_bytes(tmp_path / "model.onnx", bytes(damaged))


@pytest.mark.parametrize("name", forms.REWRITTEN)
def test_changed_bytes_of_rewritten_nodes(tmp_path: Path, name: str) -> None:
    rng = random.Random(name)
    whole = forms.REWRITTEN[name]().SerializeToString()
    for _ in range(25):
        damaged = bytearray(whole)
        for position in rng.sample(range(len(whole)), rng.choice([1, 1, 2])):
            damaged[position] = rng.choice([0, 1, 0x7F, 0xFF, rng.randrange(256), damaged[position] ^ 1])
        import_bytes(tmp_path / "model.onnx", bytes(damaged))


def test_every_truncation(tmp_path: Path) -> None:
    whole = small_model()
    for length in range(0, len(whole), 7):
        import_bytes(tmp_path / "model.onnx", whole[:length])


def test_removed_and_repeated_ranges(tmp_path: Path) -> None:
    rng = random.Random(1)
    whole = small_model()
    for _ in range(150):
        start = rng.randrange(len(whole))
        end = min(len(whole), start + rng.randrange(1, 40))
        import_bytes(tmp_path / "model.onnx", whole[:start] + whole[end:])
        import_bytes(tmp_path / "model.onnx", whole[:end] + whole[start:])
