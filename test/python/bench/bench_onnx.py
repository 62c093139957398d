"""Small ONNX models for the harness's tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def save(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[tuple[str, int, Sequence[int | str]]],
    outputs: Sequence[tuple[str, Sequence[int | str]]],
    weights: dict[str, np.ndarray],
    opset: int = 17,
) -> Path:
    """Write a model."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(name, kind, list(shape)) for name, kind, shape in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)) for name, shape in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def mlp(path: Path, batch: int | str = 4) -> Path:
    """MatMul, Relu, MatMul: [batch, 8] x [8, 16] x [16, 3]."""
    rng = np.random.default_rng(0)
    weights = {
        "w0": rng.standard_normal((8, 16)).astype(np.float32),
        "w1": rng.standard_normal((16, 3)).astype(np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "w1"], ["y"]),
    ]
    return save(path, nodes, [("x", TensorProto.FLOAT, [batch, 8])], [("y", [batch, 3])], weights)
