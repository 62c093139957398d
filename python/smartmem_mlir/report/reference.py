"""The reference that `verify` compares with: the framework that the model came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from smartmem_mlir.errors import InvalidModelError, SmartMemError
from smartmem_mlir.ingress.model import require_trust
from smartmem_mlir.report.inputs import DEFAULT_INTEGER_BOUND

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Reference:
    """Another implementation of the model.

    Args:
        name: What it is, with its version.
        run: Outputs for inputs given in the model's order.
        bounds: Exclusive upper bounds of integer inputs, by name.
    """

    name: str
    run: Callable[[Sequence[Array]], list[Array]]
    bounds: Mapping[str, int]


def onnx_reference(path: Path) -> Reference:
    """ONNX Runtime on the CPU, in the model's own types.

    Raises:
        InvalidModelError: ONNX Runtime does not load the model.
    """
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    try:
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's exceptions share no public base class.
        raise InvalidModelError(f"ONNX Runtime does not load the model: {_one_line(error)}", file=path) from error
    wanted = session.get_inputs()

    def run(inputs: Sequence[Array]) -> list[Array]:
        feed = {
            given.name: np.asarray(values, _onnx_dtype(given.type))
            for given, values in zip(wanted, inputs, strict=True)
        }
        try:
            return list(session.run(None, feed))
        except Exception as error:
            raise InvalidModelError(f"ONNX Runtime does not run the model: {_one_line(error)}", file=path) from error

    return Reference(f"ONNX Runtime {ort.__version__}", run, index_bounds(path))


def torch_reference(path: Path, trusted: bool) -> Reference:
    """PyTorch on the CPU.

    Args:
        path: The `.pt2` archive.
        trusted: Whether it may run code while it is loaded.

    Raises:
        OptionError: It may not.
        SmartMemError: torch is not installed.
        InvalidModelError: It does not load the program.
    """
    require_trust(path, trusted)
    try:
        import torch
    except ImportError as error:
        raise SmartMemError("verifying a PyTorch model needs torch", hint="pip install torch") from error
    try:
        program = torch.export.load(path)
    except Exception as error:
        raise InvalidModelError(f"PyTorch does not load the program: {_one_line(error)}", file=path) from error
    module = program.module()
    names = program.graph_signature.user_inputs
    dtypes = {
        node.name: node.meta["val"].dtype
        for node in program.graph.nodes
        if node.op == "placeholder" and hasattr(node.meta.get("val"), "dtype")
    }

    def run(inputs: Sequence[Array]) -> list[Array]:
        with torch.no_grad():
            arguments = [
                torch.from_numpy(np.ascontiguousarray(values)).to(dtypes.get(name))
                for name, values in zip(names, inputs, strict=True)
            ]
            leaves, _ = torch.utils._pytree.tree_flatten(module(*arguments))
        return [leaf.detach().numpy() for leaf in leaves if isinstance(leaf, torch.Tensor)]

    return Reference(f"PyTorch {torch.__version__}", run, {})


# Operators that hand an index on unchanged.
_INDEX_FORWARDS = {"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}


def index_bounds(path: Path) -> dict[str, int]:
    """Exclusive upper bounds of the integer inputs that index a table, by name of the input.

    An input is followed through casts and reshapes to each `Gather` whose indices it becomes; the smallest table wins.
    """
    import onnx

    graph = onnx.load(str(path), load_external_data=False).graph
    shapes: dict[str, list[int]] = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.value_info, *graph.input):
        dims = value.type.tensor_type.shape.dim
        if all(dim.HasField("dim_value") for dim in dims):
            shapes.setdefault(value.name, [dim.dim_value for dim in dims])
    consumers: dict[str, list[Any]] = {}
    for node in graph.node:
        for name in node.input:
            consumers.setdefault(name, []).append(node)
    bounds = {}
    for value in graph.input:
        found = _table_sizes(value.name, consumers, shapes)
        if found:
            bounds[value.name] = max(min(found), DEFAULT_INTEGER_BOUND - 1)
    return bounds


def _table_sizes(name: str, consumers: dict[str, list[Any]], shapes: dict[str, list[int]]) -> list[int]:
    sizes, pending, seen = [], [name], set[str]()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        for node in consumers.get(current, []):
            if node.op_type in ("Gather", "GatherElements") and node.input[1] == current:
                axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
                table = shapes.get(node.input[0])
                if table is not None and -len(table) <= axis < len(table):
                    sizes.append(table[axis])
            elif node.op_type in _INDEX_FORWARDS and node.input[0] == current:
                pending += node.output
    return sizes


def _onnx_dtype(name: str) -> np.dtype[np.generic]:
    """NumPy type of ONNX Runtime's `tensor(...)`."""
    element = name.removeprefix("tensor(").removesuffix(")")
    return np.dtype({"float": "float32", "double": "float64"}.get(element, element))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
