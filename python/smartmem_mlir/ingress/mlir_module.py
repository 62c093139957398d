"""MLIR files: any module of one public function on static tensors, its large constants moved out of the IR.

The values of `smartmem.parameter` operations that a file already has come from an archive of its name beside it:
`net.npz` for `net.mlir`, as the pass `smartmem-externalize-constants` writes it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from smartmem_mlir.errors import InvalidModelError, OptionError, UnsupportedModelError
from smartmem_mlir.i1_text import pack_i1
from smartmem_mlir.ingress.child_process import child_environment
from smartmem_mlir.ingress.mlir_parameters import given_parameters, operations
from smartmem_mlir.ingress.model import ImportedModel, ImportOptions
from smartmem_mlir.ingress.onnx_model.reader import is_weight
from smartmem_mlir.ingress.onnx_model.tensors import Array, type_of
from smartmem_mlir.signature import NUMPY_DTYPES, Parameter, TensorSpec

ENTRY = "main"

_TIMEOUT_S = 300.0

_BYTECODE_MAGIC = b"ML\xefR"

_RESOURCE_HEADER = 4
"""A resource blob starts with its alignment, a little-endian u32."""


def import_mlir(path: Path, options: ImportOptions, progress: Callable[[str], None]) -> ImportedModel:
    """Import an MLIR file (text or bytecode).

    Args:
        path: A module with one public `func.func` on statically shaped tensors (or one of the name `main`).
        options: Must be the defaults: shapes and types are fixed in MLIR.
        progress: See :func:`smartmem_mlir.ingress.importer.load`.

    Raises:
        InvalidModelError: The file does not parse or verify.
        UnsupportedModelError: It has no single entry, or the entry has dynamic shapes or types that are no tensors.
        OptionError: `options` ask for other sizes or types.
    """
    if options.dims or options.dtype:
        raise OptionError(
            "an MLIR file has fixed shapes and types", hint="change them in the tool that wrote the file", file=path
        )
    progress("reading the module")
    data = _module_bytes(path)
    check_parses(path)
    from mlir import ir

    import smartmem_mlir.dialects  # noqa: F401 (registers the dialect)

    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(data)
        entry = _entry(module, path)
        entry.attributes["sym_name"] = ir.StringAttr.get(ENTRY)
        function_type = entry.attributes["function_type"].value
        parameters = given_parameters(module, path)
        parameters |= _externalize(ir, module, _resources(data), parameters, path)
        return ImportedModel(
            name=path.stem,
            source=path,
            kind="mlir",
            module=str(module),
            inputs=tuple(_spec(f"input{i}", t, path) for i, t in enumerate(function_type.inputs)),
            outputs=tuple(_spec(f"output{i}", t, path) for i, t in enumerate(function_type.results)),
            parameters=parameters,
        )


def check_parses(path: Path) -> None:
    """Parse and verify a file in a process of its own: MLIR's parser has assertions.

    Raises:
        InvalidModelError: It does not parse, does not verify, or crashes the parser.
    """
    command = [sys.executable, "-m", "smartmem_mlir.ingress.mlir_module", str(path)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
            env=child_environment(),
        )
    except subprocess.TimeoutExpired as error:
        raise InvalidModelError(f"parsing took longer than {_TIMEOUT_S:.0f} s", file=path) from error
    if done.returncode != 0:
        lines = [line.strip() for line in (done.stdout or done.stderr).splitlines() if line.strip()]
        raise InvalidModelError(
            f"not a valid module: {lines[0] if lines else f'the parser crashed ({done.returncode})'}",
            hint="check it with mlir-opt of LLVM 22",
            file=path,
        )


def _module_bytes(path: Path) -> bytes:
    """The file as MLIR 22 reads it; bytecode is left alone, since each release reads its own."""
    data = path.read_bytes()
    return (
        data
        if data.startswith(_BYTECODE_MAGIC)
        else pack_i1(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")
    )


def _parse_only(path: Path) -> int:
    from mlir import ir

    import smartmem_mlir.dialects  # noqa: F401 (registers the dialect)

    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        try:
            ir.Module.parse(_module_bytes(path)).operation.verify()
        except ir.MLIRError as error:
            first = error.error_diagnostics[0] if error.error_diagnostics else error
            where = f"{first.location}: " if hasattr(first, "location") else ""
            print(f"{where}{getattr(first, 'message', first)}")
            return 1
    return 0


def _entry(module: Any, path: Path) -> Any:
    functions = [o for o in module.body.operations if o.operation.name == "func.func"]
    public = [f for f in functions if "sym_visibility" not in f.attributes and f.regions[0].blocks]
    named = [f for f in public if f.attributes["sym_name"].value == ENTRY]
    if len(public) != 1 and not named:
        names = ", ".join("@" + f.attributes["sym_name"].value for f in public) or "none"
        raise UnsupportedModelError(
            f"needs one public function with a body, or @{ENTRY}; found {names}",
            hint=f"rename the entry to @{ENTRY}",
            file=path,
        )
    return (named or public)[0]


def _spec(name: str, type_: Any, path: Path) -> TensorSpec:
    from mlir import ir

    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        raise UnsupportedModelError(f"{type_} is not a tensor of static shape", file=path, node=f"@{ENTRY} {name}")
    element = str(type_.element_type)
    if element not in NUMPY_DTYPES:
        raise UnsupportedModelError(f"element type {element} is not supported", file=path, node=f"@{ENTRY} {name}")
    return TensorSpec(name, tuple(type_.shape), element)


def _externalize(
    ir: Any, module: Any, resources: dict[str, str], taken: Mapping[str, Parameter], path: Path
) -> dict[str, Parameter]:
    """Replace each large constant by a parameter; returns the new parameters by key."""
    parameters: dict[str, Parameter] = {}
    free = (key for key in (f"constant_{number}" for number in count()) if key not in taken)
    for constant in list(operations(module.operation, "arith.constant")):
        value = constant.attributes["value"]
        loaded = _values(value, resources)
        if loaded is None:
            continue
        if not is_weight(type_of(loaded)):
            if loaded.dtype == np.bool_:
                # iree-compile aborts when it folds a boolean resource: its elements cannot be iterated over.
                constant.attributes["value"] = _literal(ir, value.type, loaded)
            continue
        key = next(free)
        spec = _spec(key, value.type, path)
        with ir.InsertionPoint(constant):
            parameter = ir.Operation.create(
                "smartmem.parameter", [value.type], attributes={"key": ir.StringAttr.get(key)}, loc=constant.location
            )
        constant.results[0].replace_all_uses_with(parameter.result)
        constant.erase()
        parameters[key] = Parameter(spec, partial(_identity, loaded))
    return parameters


def _literal(ir: Any, type_: Any, values: Array) -> Any:
    """Booleans, written in place."""
    return ir.DenseElementsAttr.get([ir.BoolAttr.get(bool(value)) for value in values.flat], type_)


def _identity(values: Array) -> Array:
    return values


def _values(value: Any, resources: dict[str, str]) -> Array | None:
    """The values of a tensor constant that is no splat, or None."""
    if getattr(value, "is_splat", None) is False:
        return np.array(value)
    resource = re.fullmatch(r"dense_resource<\"?([^\">]+)\"?> : tensor<.*>", str(value))
    if resource is None or resource[1] not in resources:
        return None
    blob = bytes.fromhex(resources[resource[1]])[_RESOURCE_HEADER:]
    dtype = NUMPY_DTYPES.get(str(value.type.element_type))
    if dtype is None:
        return None
    # Booleans included: packed are only those that are written in place.
    return np.frombuffer(blob, dtype=dtype).reshape(value.type.shape)


def _resources(data: bytes) -> dict[str, str]:
    """The hexadecimal blobs of a text file's resource section, by key."""
    start = data.rfind(b"dialect_resources")
    if start < 0:
        return {}
    found = re.finditer(rb'([\w.$-]+|"[^"]+")\s*:\s*"0x([0-9A-Fa-f]+)"', data[start:])
    return {m[1].decode().strip('"'): m[2].decode() for m in found}


if __name__ == "__main__":
    sys.exit(_parse_only(Path(sys.argv[1])))
