"""Small ONNX models for the tests, and what they compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from smartmem_mlir.ingress.model import ImportOptions
from smartmem_mlir.ingress.onnx_importer import static_graph
from smartmem_mlir.ingress.onnx_model.emit import emit_model, parameters_of
from smartmem_mlir.ingress.onnx_model.reader import read_proto

Value = onnx.ValueInfoProto


def value(name: str, shape: Sequence[int | str | None] | None, dtype: int = TensorProto.FLOAT) -> Value:
    """A named tensor type; a string is a symbolic dimension, None an unnamed one."""
    return helper.make_tensor_value_info(name, dtype, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[Value],
    outputs: Sequence[str],
    initializers: Mapping[str, Any] | None = None,
    opset: int = 18,
) -> onnx.ModelProto:
    """A model; its outputs' types are left to inference."""
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in (initializers or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name=name) for name in outputs], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def single(op: str, inputs: Mapping[str, Any], opset: int = 18, outputs: int = 1, **attributes: Any) -> onnx.ModelProto:
    """A model of one node. Arrays are constants, `Value`s arguments; None is an omitted operand."""
    names = [name if given is not None else "" for name, given in inputs.items()]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], name=f"the_{op}", **attributes)
    arguments = [given for given in inputs.values() if isinstance(given, onnx.ValueInfoProto)]
    constants = {k: v for k, v in inputs.items() if v is not None and not isinstance(v, onnx.ValueInfoProto)}
    return model([node], arguments, list(node.output), constants, opset)


def specialized(proto: onnx.ModelProto, options: ImportOptions | None = None) -> onnx.ModelProto:
    """The model that goes to torch-mlir, its parameters put back as initializers so that it runs."""
    copied = onnx.ModelProto()
    copied.CopyFrom(proto)
    read = read_proto(copied, None)
    graph = static_graph(read, options or ImportOptions())
    weights = parameters_of(graph)
    emitted = emit_model(graph, weights)
    arguments = [i for i in emitted.graph.input if i.name not in weights]
    del emitted.graph.input[:]
    emitted.graph.input.extend(arguments)
    for name, weight in weights.items():
        emitted.graph.initializer.append(numpy_helper.from_array(weight.load(), name))
    for n, node in enumerate(emitted.graph.node):
        node.name = f"{n}"  # ONNX Runtime wants them unique
    return emitted


def run_onnxruntime(proto: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """Run a model in ONNX Runtime on the CPU."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(feeds)))


def random_feeds(proto: onnx.ModelProto, seed: int = 0) -> dict[str, Any]:
    """Values for a model's static inputs: normal for floats, 0 to 9 for integers."""
    rng = np.random.default_rng(seed)
    feeds = {}
    for given in proto.graph.input:
        shape = [d.dim_value for d in given.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(given.type.tensor_type.elem_type)
        drawn = rng.standard_normal(shape) if dtype.kind == "f" else rng.integers(0, 10, shape)
        feeds[given.name] = drawn.astype(dtype)
    return feeds


def save(directory: Path, proto: onnx.ModelProto) -> Path:
    """Write a model as `model.onnx`."""
    path = directory / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path
