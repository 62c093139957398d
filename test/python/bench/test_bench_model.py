"""What the harness reads from a model file: shapes, size, work, inputs that make sense."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from bench_onnx import mlp, save
from onnx import TensorProto, helper

from smartmem_mlir.bench.flops import multiply_adds
from smartmem_mlir.bench.model import copy_model, open_model
from smartmem_mlir.bench.reference import make_workload
from smartmem_mlir.errors import InvalidModelError, OptionError, UnsupportedModelError


def test_facts_of_a_model(tmp_path: Path) -> None:
    model = open_model(mlp(tmp_path / "mlp.onnx"), tmp_path / "work", {})
    assert model.facts.name == "mlp"
    assert model.facts.nodes == 3
    assert model.facts.weight_bytes == 4 * (8 * 16 + 16 * 3)
    assert model.facts.flops == 2 * (4 * 8 * 16 + 4 * 16 * 3)
    assert model.facts.compulsory_bytes == model.facts.weight_bytes + 4 * (4 * 8 + 4 * 3)
    assert model.signature == {"inputs": [{"name": "x", "shape": [4, 8], "dtype": "float32"}], "outputs": ["y"]}


def test_symbolic_dimensions_become_static_in_the_copy(tmp_path: Path) -> None:
    source = mlp(tmp_path / "mlp.onnx", batch="n")
    with pytest.raises(OptionError, match="--dim n=N"):
        open_model(source, tmp_path / "work", {})
    model = open_model(source, tmp_path / "work", {"n": 5})
    assert model.inputs[0].shape == (5, 8)
    copied = onnx.load(model.path)
    assert [d.dim_value for d in copied.graph.input[0].type.tensor_type.shape.dim] == [5, 8]
    assert onnx.load(source).graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08\x07" * 40])
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    with pytest.raises(InvalidModelError, match=r"bad\.onnx"):
        open_model(path, tmp_path / "work", {})


def test_external_weights_travel_with_the_copy(tmp_path: Path) -> None:
    source = tmp_path / "model" / "mlp.onnx"
    source.parent.mkdir()
    proto = onnx.load(mlp(tmp_path / "inline.onnx"))
    weights = proto.graph.initializer[0].raw_data
    onnx.save(proto, source, save_as_external_data=True, location="weights.bin", size_threshold=0)
    model = open_model(source, tmp_path / "work", {})
    copy = copy_model(model, tmp_path / "copy")
    assert onnx.load(copy).graph.initializer[0].raw_data == weights
    copy.write_bytes(b"")
    (copy.parent / "weights.bin").write_bytes(b"")
    assert onnx.load(model.path).graph.initializer[0].raw_data == weights


def test_external_weights_outside_the_folder_are_refused(tmp_path: Path) -> None:
    proto = onnx.load(mlp(tmp_path / "mlp.onnx"))
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../secret")
    folder = tmp_path / "model"
    folder.mkdir()
    onnx.save(proto, folder / "mlp.onnx")
    (tmp_path / "secret").write_bytes(b"x" * 1000)
    with pytest.raises(InvalidModelError, match="outside"):
        open_model(folder / "mlp.onnx", tmp_path / "work", {})


def test_token_inputs_index_their_table(tmp_path: Path) -> None:
    table = np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32)
    nodes = [helper.make_node("Gather", ["table", "ids"], ["y"])]
    path = save(tmp_path / "m.onnx", nodes, [("ids", TensorProto.INT64, [200])], [("y", [200, 3])], {"table": table})
    model = open_model(path, tmp_path / "work", {})
    workload = make_workload(model, tmp_path / "inputs", seed=0, threads=1)
    ids = np.load(workload.inputs[0])
    assert set(ids.tolist()) == set(range(7))
    assert np.array_equal(workload.reference[0], table[ids])


def test_inputs_depend_on_the_seed_alone(tmp_path: Path) -> None:
    model = open_model(mlp(tmp_path / "mlp.onnx"), tmp_path / "work", {})
    first, again, other = (make_workload(model, tmp_path / str(i), seed, 1) for i, seed in enumerate((3, 3, 4)))
    assert np.array_equal(first.reference[0], again.reference[0])
    assert not np.array_equal(first.reference[0], other.reference[0])


def test_a_model_without_a_reference_is_refused(tmp_path: Path) -> None:
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    weights = {"shape": np.array([5, 5], np.int64)}
    path = save(tmp_path / "m.onnx", nodes, [("x", TensorProto.FLOAT, [4, 8])], [("y", [5, 5])], weights)
    model = open_model(path, tmp_path / "work", {})
    with pytest.raises(UnsupportedModelError, match="ONNX Runtime"):
        make_workload(model, tmp_path / "inputs", seed=0, threads=1)


@pytest.mark.parametrize(
    ("kind", "attributes", "shapes", "wanted"),
    [
        ("Conv", {"group": 1}, {"a": (1, 6, 9, 9), "b": (8, 6, 3, 3), "y": (1, 8, 7, 7)}, 8 * 49 * 6 * 9),
        ("Conv", {"group": 6}, {"a": (1, 6, 9, 9), "b": (6, 1, 3, 3), "y": (1, 6, 7, 7)}, 6 * 49 * 9),
        ("ConvTranspose", {}, {"a": (1, 6, 5, 5), "b": (6, 4, 2, 2), "y": (1, 4, 10, 10)}, 6 * 25 * 4 * 4),
        ("MatMul", {}, {"a": (2, 3, 5, 7), "b": (7, 11), "y": (2, 3, 5, 11)}, 2 * 3 * 5 * 7 * 11),
        ("Gemm", {"transA": 1}, {"a": (7, 5), "b": (7, 11), "y": (5, 11)}, 5 * 7 * 11),
        ("Gemm", {}, {"a": (5, 7), "b": (7, 11), "y": (5, 11)}, 5 * 7 * 11),
        ("Einsum", {"equation": "bij, bjk -> bik"}, {"a": (2, 3, 5), "b": (2, 5, 7), "y": (2, 3, 7)}, 2 * 3 * 5 * 7),
        ("Einsum", {"equation": "...ij,jk->...ik"}, {"a": (4, 3, 5), "b": (5, 7), "y": (4, 3, 7)}, 4 * 3 * 5 * 7),
        ("Einsum", {"equation": "i...,i...->..."}, {"a": (4, 3), "b": (4, 3), "y": (3,)}, 12),
        ("Add", {}, {"a": (5, 7), "b": (5, 7), "y": (5, 7)}, 0),
    ],
)
def test_multiply_adds(
    kind: str, attributes: dict[str, object], shapes: dict[str, tuple[int, ...]], wanted: int
) -> None:
    node = helper.make_node(kind, ["a", "b"], ["y"], **attributes)
    assert multiply_adds(node, shapes) == wanted
