"""The parameters that an MLIR file already has, and their values in an `.npz` archive beside it."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from smartmem_mlir.errors import InvalidModelError, UnsupportedModelError
from smartmem_mlir.ingress.onnx_model.tensors import Array
from smartmem_mlir.signature import NUMPY_DTYPES, Parameter, TensorSpec

PARAMETER_OP = "smartmem.parameter"
_HINT = "write both with smartmem-externalize-constants{archive=FILE.npz}"


def given_parameters(module: Any, path: Path) -> dict[str, Parameter]:
    """The parameters by key, each to be read from the archive when its turn comes.

    Args:
        module: The module.
        path: Its file; the archive has the same name with the suffix `.npz`.

    Raises:
        UnsupportedModelError: The archive is missing, lacks a parameter, or a type has no NumPy equivalent.
        InvalidModelError: It is no `.npz` archive, or one parameter has two types.
    """
    types: dict[str, Any] = {}
    for operation in operations(module.operation, PARAMETER_OP):
        key, type_ = operation.attributes["key"].value, operation.results[0].type
        if types.setdefault(key, type_) != type_:
            raise InvalidModelError(
                f"the parameter is a {type_} here and a {types[key]} elsewhere", file=path, node=key
            )
    if not types:
        return {}
    archive = path.with_suffix(".npz")
    names = _names(archive, path)
    parameters = {}
    for key, type_ in types.items():
        if key not in names:
            raise UnsupportedModelError(f"{archive.name} has no values of it", hint=_HINT, file=path, node=key)
        element = str(type_.element_type)
        if element not in NUMPY_DTYPES:
            raise UnsupportedModelError(f"element type {element} is not supported", file=path, node=key)
        spec = TensorSpec(key, tuple(type_.shape), element)
        parameters[key] = Parameter(spec, partial(_read, archive, spec))
    return parameters


def operations(operation: Any, name: str) -> Iterator[Any]:
    """All operations of a name inside an operation."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name == name:
                    yield inner.operation
                else:
                    yield from operations(inner.operation, name)


def _names(archive: Path, path: Path) -> set[str]:
    if not archive.is_file():
        raise UnsupportedModelError(
            f"it has parameters whose values are not in the file, and there is no {archive.name} beside it",
            hint=_HINT,
            file=path,
        )
    try:
        with zipfile.ZipFile(archive) as members:
            return {name.removesuffix(".npy") for name in members.namelist()}
    except (OSError, zipfile.BadZipFile) as error:
        raise InvalidModelError(f"not an .npz archive: {error}", hint=_HINT, file=archive) from error


def _read(archive: Path, spec: TensorSpec) -> Array:
    try:
        # Pickles run code; the arrays that the pass writes need none.
        with np.load(archive, allow_pickle=False) as arrays:
            values: Array = arrays[spec.name]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InvalidModelError(f"cannot read the values: {error}", file=archive, node=spec.name) from error
    if values.shape != spec.shape or values.dtype != spec.numpy_dtype:
        given = "x".join(map(str, (*values.shape, values.dtype)))
        raise InvalidModelError(f"the values are {given}, expected {spec}", file=archive, node=spec.name)
    return values
