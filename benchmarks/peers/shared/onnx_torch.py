"""An ONNX graph as a `torch.nn.Module` that `torch.export` can trace, for converters that only read PyTorch.

Shape arithmetic is evaluated once, on example inputs, and disappears: what is left has static shapes. Operators become
the PyTorch function of the same meaning (LayerNormalization is `layer_norm`), so that a converter sees what it would
see in a PyTorch model. The harness compares every output with ONNX Runtime's, so a mistake here cannot pass unseen.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from onnx_gelu import fuse_gelu
from onnx_operators import OPERATORS, Node

_FIXED_SHAPE = {"Shape", "Size"}


class OnnxModule(torch.nn.Module):
    """A model that runs node by node.

    Args:
        path: ONNX file.
        inputs: Example inputs, in the model's order.

    Raises:
        NotImplementedError: Names every operator that is missing here.
    """

    def __init__(self, path: Path, inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()
        graph = onnx.load(path).graph
        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant" and node.attribute[0].HasField("t"):
                constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        missing = sorted({node.op_type for node in graph.node} - OPERATORS.keys())
        if missing:
            raise NotImplementedError(f"no PyTorch form of {', '.join(missing)} here")
        known = {tensor.name: constants[tensor.name].copy() for tensor in graph.initializer}
        self._input_names = [value.name for value in graph.input if value.name not in known]
        self._output_names = [value.name for value in graph.output]
        self._nodes: list[Node] = []
        values = {name: torch.from_numpy(array) for name, array in known.items()}
        values.update(zip(self._input_names, inputs, strict=True))
        with torch.no_grad():
            for proto in fuse_gelu(graph, constants):
                node = Node(proto, known)
                results = _call(node, [values.get(name) for name in node.inputs])
                values.update(zip(node.outputs, results, strict=False))
                if proto.op_type in _FIXED_SHAPE or all(name in known for name in node.inputs if name):
                    arrays = (np.asarray(result.numpy()) for result in results)
                    known.update(zip(node.outputs, arrays, strict=False))
                else:
                    self._nodes.append(node)
        self._nodes = _needed(self._nodes, self._output_names)
        wanted = {name for node in self._nodes for name in node.inputs} | set(self._output_names)
        self._constants = {}
        for index, name in enumerate(sorted(wanted & known.keys())):
            # Folding leaves views; a converter may take tensors that share memory for one tensor.
            self.register_buffer(f"constant_{index}", values[name].clone(memory_format=torch.contiguous_format))
            self._constants[name] = f"constant_{index}"

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One inference; outputs in the model's order."""
        values: dict[str, Any] = {name: getattr(self, label) for name, label in self._constants.items()}
        values.update(zip(self._input_names, inputs, strict=True))
        for node in self._nodes:
            results = _call(node, [values.get(name) for name in node.inputs])
            values.update(zip(node.outputs, results, strict=False))
        return tuple(values[name] for name in self._output_names)


def _needed(nodes: Sequence[Node], outputs: Sequence[str]) -> list[Node]:
    """The nodes that the outputs depend on."""
    wanted, kept = set(outputs), []
    for node in reversed(nodes):
        if wanted & set(node.outputs):
            kept.append(node)
            wanted |= set(node.inputs)
    return kept[::-1]


def load(model: Path, signature: dict[str, Any]) -> tuple[OnnxModule, tuple[torch.Tensor, ...]]:
    """The module in inference mode, and example inputs of the right shapes.

    Args:
        model: ONNX file.
        signature: Inputs as the harness describes them.
    """
    generator = np.random.default_rng(0)
    arrays = []
    for entry in signature["inputs"]:
        dtype = np.dtype(entry["dtype"])
        drawn = generator.standard_normal(entry["shape"]) if dtype.kind == "f" else np.zeros(entry["shape"])
        arrays.append(torch.from_numpy(drawn.astype(dtype)))
    return OnnxModule(model, arrays).eval(), tuple(arrays)


def _call(node: Node, inputs: list[Any]) -> list[torch.Tensor]:
    result = OPERATORS[node.kind](node, *inputs)
    return list(result) if isinstance(result, (list, tuple)) else [result]
