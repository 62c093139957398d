"""Give every input a static shape."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx

from smartmem_mlir.errors import InvalidModelError, OptionError, UnsupportedModelError
from smartmem_mlir.ingress.onnx_model.tensors import NUMPY_TYPES, TensorType, check_dims, element_type_name


def static_inputs(graph: onnx.GraphProto, dims: Mapping[str, int], file: Path | None) -> dict[str, TensorType]:
    """The type of each graph input, symbolic dimensions replaced by the given sizes.

    Args:
        graph: The main graph, its inputs without those that have initializers.
        dims: Sizes by symbolic name, or by `input:axis`.
        file: For errors.

    Raises:
        OptionError: A dimension has no size (the error lists all of them), or `dims` has a name that the model
            lacks or a size that is not positive or contradicts the model.
        InvalidModelError: A dimension is negative.
        UnsupportedModelError: An input is not a tensor or has no rank.
    """
    missing: dict[str, str] = {}  # option name -> where it occurs
    known: set[str] = set()
    types: dict[str, TensorType] = {}
    for name, size in dims.items():
        if size <= 0:
            raise OptionError(f"--dim {name}={size}: a size must be positive", file=file)
    for value in graph.input:
        if not value.type.HasField("tensor_type"):
            kind = value.type.WhichOneof("value") or "untyped value"
            raise UnsupportedModelError(f"input is a {kind}, not a tensor", file=file, node=value.name)
        tensor = value.type.tensor_type
        if not tensor.HasField("shape"):
            raise UnsupportedModelError(
                "input has no shape, not even a rank",
                hint="export the model with input shapes",
                file=file,
                node=value.name,
            )
        shape: list[int] = []
        for axis, dim in enumerate(tensor.shape.dim):
            by_axis = f"{value.name}:{axis}"
            known |= {by_axis, dim.dim_param} if dim.dim_param else {by_axis}
            given = dims.get(by_axis, dims.get(dim.dim_param) if dim.dim_param else None)
            if dim.HasField("dim_value"):
                if given is not None and given != dim.dim_value:
                    raise OptionError(
                        f"--dim {by_axis}={given}: the model fixes this dimension to {dim.dim_value}", file=file
                    )
                shape.append(dim.dim_value)
            elif given is not None:
                shape.append(given)
            else:
                missing.setdefault(dim.dim_param or by_axis, f"axis {axis} of {value.name!r}")
        if len(shape) == len(tensor.shape.dim):
            types[value.name] = check_dims(shape, tensor.elem_type, file=file, node=value.name)
    unknown = [name for name in dims if name not in known]
    if unknown:
        dimensions = (d for value in graph.input for d in value.type.tensor_type.shape.dim)
        symbolic = ", ".join(repr(name) for name in sorted({d.dim_param for d in dimensions if d.dim_param}))
        raise OptionError(
            f"--dim names {', '.join(map(repr, unknown))}, which no input has",
            hint=f"the model's symbolic dimensions are {symbolic or '(none)'}; any other is named by input:axis",
            file=file,
        )
    if missing:
        where = ", ".join(f"{name} ({place})" for name, place in missing.items())
        flags = " ".join(f"--dim {name}=N" for name in missing)
        raise OptionError(f"dimensions without a size: {where}", hint=f"give {flags}", file=file)
    _check_element_types(types, file)
    return types


def _check_element_types(types: Mapping[str, TensorType], file: Path | None) -> None:
    for name, tensor in types.items():
        if tensor.element_type == onnx.TensorProto.UNDEFINED:
            raise InvalidModelError("input has no element type", file=file, node=name)
        if tensor.element_type not in NUMPY_TYPES:
            raise UnsupportedModelError(
                f"inputs of type {element_type_name(tensor.element_type)} are not supported", file=file, node=name
            )
