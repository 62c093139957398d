"""The model as the harness sees it: names, shapes, size, work, test inputs."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from smartmem_mlir.bench.flops import count_flops
from smartmem_mlir.bench.results import ModelFacts
from smartmem_mlir.errors import InvalidModelError, OptionError
from smartmem_mlir.signature import MLIR_DTYPES, TensorSpec


@dataclass(frozen=True)
class BenchModel:
    """A model on disk with static input shapes, in a copy of our own.

    Args:
        facts: What is known without running it.
        path: The copy.
        inputs: In order.
        outputs: Names of the outputs, in order.
        dims: Sizes given to symbolic dimensions.
        source: The user's file.
    """

    facts: ModelFacts
    path: Path
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[str, ...]
    dims: Mapping[str, int]
    source: Path

    @property
    def signature(self) -> dict[str, Any]:
        """Inputs and outputs as adapters are told them; see :mod:`.peer_server`."""
        inputs = [{"name": i.name, "shape": list(i.shape), "dtype": i.numpy_dtype.name} for i in self.inputs]
        return {"inputs": inputs, "outputs": list(self.outputs)}


def open_model(source: Path, workdir: Path, dims: Mapping[str, int]) -> BenchModel:
    """Read an ONNX model and copy it, with static input shapes, to `workdir`.

    Args:
        source: The ONNX file; external weights lie beside it.
        workdir: Folder for the copy.
        dims: Sizes of symbolic dimensions, by name.

    Raises:
        InvalidModelError: The file is no ONNX model.
        OptionError: A dimension is symbolic and `dims` does not give its size.
    """
    try:
        proto = onnx.load(source, load_external_data=False)
    except Exception as error:  # protobuf raises types of its own, which differ between its versions
        raise InvalidModelError(f"not an ONNX model: {error}", file=source) from error
    if not proto.graph.node:
        raise InvalidModelError("not an ONNX model, or one without operators", file=source)
    weights = {tensor.name: tensor for tensor in proto.graph.initializer}
    inputs = tuple(_static_input(value, dims, source) for value in proto.graph.input if value.name not in weights)
    workdir.mkdir(parents=True, exist_ok=True)
    path = workdir / "model.onnx"
    onnx.save(proto, path)
    _copy_external(proto, source.parent, workdir)
    weight_bytes = sum(_tensor_bytes(tensor) for tensor in weights.values())
    flops, output_bytes = count_flops(source, dims)
    io_bytes = sum(spec.nbytes for spec in inputs) + output_bytes
    facts = ModelFacts(
        name=source.stem,
        sha256=hashlib.sha256(source.read_bytes()).hexdigest(),
        nodes=len(proto.graph.node),
        weight_bytes=weight_bytes,
        flops=flops,
        compulsory_bytes=weight_bytes + io_bytes,
    )
    outputs = tuple(value.name for value in proto.graph.output)
    return BenchModel(facts, path, inputs, outputs, dict(dims), source)


def copy_model(model: BenchModel, folder: Path) -> Path:
    """A copy for a converter to read and, as one of them does, to overwrite."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in model.path.parent.iterdir():
        if file.is_file():
            shutil.copyfile(file, folder / file.name)
    return folder / model.path.name


def _static_input(value: onnx.ValueInfoProto, dims: Mapping[str, int], source: Path) -> TensorSpec:
    """Read one input and write its sizes into the proto."""
    tensor = value.type.tensor_type
    shape = []
    for axis, dim in enumerate(tensor.shape.dim):
        if not dim.HasField("dim_value"):
            label = dim.dim_param or f"{value.name}:{axis}"
            if label not in dims:
                raise OptionError(
                    f"dimension '{label}' of input '{value.name}' has no size",
                    hint=f"pass --dim {label}=N",
                    file=source,
                )
            dim.dim_value = dims[label]
        shape.append(int(dim.dim_value))
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    if dtype not in MLIR_DTYPES:
        raise InvalidModelError(f"inputs of type {dtype} are not supported", file=source, node=value.name)
    return TensorSpec(value.name, tuple(shape), MLIR_DTYPES[dtype])


def _tensor_bytes(tensor: onnx.TensorProto) -> int:
    return int(np.prod(tensor.dims, dtype=np.int64)) * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize


def _copy_external(proto: onnx.ModelProto, source: Path, target: Path) -> None:
    """Copy the files that hold external weights; one outside the model's folder is refused."""
    locations = {
        entry.value for tensor in proto.graph.initializer for entry in tensor.external_data if entry.key == "location"
    }
    for location in sorted(locations):
        file = (source / location).resolve()
        if not file.is_relative_to(source.resolve()):
            raise InvalidModelError(f"external weights lie outside the model's folder: {location}", file=source)
        (target / location).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target / location)
