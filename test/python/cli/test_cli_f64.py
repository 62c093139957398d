"""Models in f64 keep their type: IREE by default computes them in f32 and changes the function's types."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import smartmem_mlir as sm


@pytest.mark.parametrize("baseline", [True, False], ids=["baseline", "ours"])
def test_f64_on_the_cpu(tmp_path: Path, baseline: bool) -> None:
    weights = np.random.default_rng(0).standard_normal((16, 8)) * 0.1
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["t", "w"], ["m"]),
        helper.make_node("Softmax", ["m"], ["s"], axis=-1),
        helper.make_node("Add", ["s", "third"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "f64",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, [16, 4])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, [4, 8])],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(np.array(1 / 3), "third")],
    )
    path = tmp_path / "f64.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()
    )
    compiled = sm.compile(path, tmp_path / "out", baseline=baseline)
    assert [info.spec.dtype for info in (*compiled.report.inputs, *compiled.report.outputs)] == ["f64", "f64"]
    result = compiled.verify(tolerance=1e-14)
    assert result.matches, "f32 would be off by 1e-8"
