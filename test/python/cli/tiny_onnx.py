"""Small ONNX models, built here so that their weights and shapes are known."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[np.generic]


@dataclass
class Builder:
    """Collects nodes and weights; every method returns the name of the tensor it made."""

    rng: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)

    def weight(self, *shape: int) -> str:
        values = (self.rng.standard_normal(shape) * 0.1).astype(np.float32)
        return self.const(values)

    def const(self, values: Array) -> str:
        name = f"const_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def ints(self, *values: int) -> str:
        return self.const(np.array(values, np.int64))

    def op(self, operator: str, *inputs: str, outputs: int = 1, name: str | None = None, **attributes: object) -> str:
        results = [name] if name else [f"{operator}_{len(self.nodes)}_{i}" for i in range(outputs)]
        node_name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), results, name=node_name, **attributes))
        return results[0]

    def save(self, path: Path, inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]) -> Path:
        graph = helper.make_graph(self.nodes, path.stem, inputs, outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        onnx.checker.check_model(model)
        onnx.save(model, path)
        return path


def transformer(path: Path, *, tokens: int = 49, width: int = 64, heads: int = 4, seed: int = 0) -> Path:
    """One block: LayerNorm, fused QKV whose heads a 5-D transpose moves, softmax attention, ReLU MLP, residuals.

    Input `x`, output `y`, both 1 x tokens x width.
    """
    b = Builder(np.random.default_rng(seed))
    normed = b.op("LayerNormalization", "x", b.weight(width), b.weight(width), axis=-1)
    qkv = b.op("Add", b.op("MatMul", normed, b.weight(width, 3 * width)), b.weight(3 * width))
    split = b.op("Reshape", qkv, b.ints(1, tokens, 3, heads, width // heads))
    moved = b.op("Transpose", split, perm=[2, 0, 3, 1, 4])
    q, k, v = (b.op("Gather", moved, b.const(np.array(i, np.int64)), axis=0) for i in range(3))
    scores = b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2]))
    mixed = b.op("MatMul", b.op("Softmax", scores, axis=-1), v)
    joined = b.op("Reshape", b.op("Transpose", mixed, perm=[0, 2, 1, 3]), b.ints(1, tokens, width))
    attended = b.op("Add", b.op("MatMul", joined, b.weight(width, width)), "x")
    hidden = b.op("Relu", b.op("MatMul", attended, b.weight(width, 2 * width)))
    b.op("Add", b.op("MatMul", hidden, b.weight(2 * width, width)), attended, name="y")
    shape = [1, tokens, width]
    return b.save(
        path,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )


def embedding(path: Path, *, rows: int = 7) -> Path:
    """Token ids index a table of `rows` rows, a mask keeps or zeroes, an argmax comes out beside the values.

    Inputs `ids` (1x5xi64) and `keep` (1x5xi1); outputs `values` (1x5x8) and `best` (1x5xi64).
    """
    b = Builder(np.random.default_rng(1))
    looked_up = b.op("Gather", b.weight(rows, 8), "ids", axis=0)
    mask = b.op("Unsqueeze", "keep", b.ints(2))
    b.op("Where", mask, looked_up, b.const(np.zeros((), np.float32)), name="values")
    b.op("ArgMax", looked_up, axis=-1, keepdims=0, name="best")
    return b.save(
        path,
        [
            helper.make_tensor_value_info("ids", TensorProto.INT64, [1, 5]),
            helper.make_tensor_value_info("keep", TensorProto.BOOL, [1, 5]),
        ],
        [
            helper.make_tensor_value_info("values", TensorProto.FLOAT, [1, 5, 8]),
            helper.make_tensor_value_info("best", TensorProto.INT64, [1, 5]),
        ],
    )


def dynamic_batch(path: Path) -> Path:
    """A linear layer whose batch is the symbol `n`."""
    b = Builder(np.random.default_rng(2))
    b.op("MatMul", "x", b.weight(8, 4), name="y")
    return b.save(
        path,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
    )
