"""Large constants leave the IR and become parameters."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import mlir.ir as ir

import smartmem_mlir._smartmem as _smartmem
from smartmem_mlir.dialects import smartmem
from smartmem_mlir.errors import OptionError
from smartmem_mlir.signature import NUMPY_DTYPES
from smartmem_mlir.transforms.pass_base import Pass, PassError, option
from smartmem_mlir.transforms.walk import walk

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

DEFAULT_MIN_ELEMENTS = 1024
"""Smaller constants stay: kernels embed them, and an archive entry of a few bytes costs more than it saves."""


def externalize_constants(
    module: ir.Operation, *, min_elements: int = DEFAULT_MIN_ELEMENTS, prefix: str = "constant"
) -> dict[str, npt.NDArray[np.generic]]:
    """Replaces large `arith.constant` tensors by `smartmem.parameter`; equal constants share one parameter.

    Splats stay, because they are small whatever their shape, and so do constants whose element type NumPy lacks (bf16)
    and those inside a `smartmem.group`, which may not hold parameters.

    Args:
        module: Rewritten in place.
        min_elements: Constants with fewer elements stay.
        prefix: Keys are `prefix.0`, `prefix.1`, ... in the order of the IR, without those already taken.

    Returns:
        The values by key, C-contiguous, of the shape and element type of the parameter.
    """
    taken = {op.opview.key.value for op in walk(module) if op.name == "smartmem.parameter"}
    keys: dict[ir.Attribute, str] = {}
    values: dict[str, npt.NDArray[np.generic]] = {}
    numbers = iter(range(1 << 62))
    for op in list(_large_constants(module, min_elements)):
        attr = op.attributes["value"]
        if attr not in keys:
            key = next(key for key in (f"{prefix}.{i}" for i in numbers) if key not in taken)
            keys[attr], values[key] = key, _to_numpy(op, attr)
        with ir.InsertionPoint(op), op.location:
            parameter = smartmem.ParameterOp(op.results[0].type, keys[attr])
        op.results[0].replace_all_uses_with(parameter.result)
        op.erase()
    return values


def _large_constants(module: ir.Operation, min_elements: int) -> Iterator[ir.Operation]:
    for op in walk(module, skip=("smartmem.group",)):
        if op.name != "arith.constant" or not isinstance(op.results[0].type, ir.RankedTensorType):
            continue
        tensor = op.results[0].type
        attr = op.attributes["value"]
        is_splat = isinstance(attr, ir.DenseElementsAttr) and attr.is_splat
        if prod(tensor.shape) >= min_elements and not is_splat and str(tensor.element_type) in NUMPY_DTYPES:
            yield op


def _to_numpy(op: ir.Operation, attr: ir.Attribute) -> npt.NDArray[np.generic]:
    import numpy as np

    tensor = ir.RankedTensorType(op.results[0].type)
    dtype = NUMPY_DTYPES[str(tensor.element_type)]
    if isinstance(attr, ir.DenseElementsAttr):
        return np.ascontiguousarray(np.array(attr), dtype)
    data = _smartmem.dense_resource_bytes(attr)
    if data is None:
        raise PassError("constant has no values in this module", op=op, hint="keep its resource section")
    expected = prod(tensor.shape) * dtype.itemsize
    if len(data) != expected:
        raise PassError(f"constant has {len(data)} bytes of values, expected {expected}", op=op)
    return np.frombuffer(data, dtype).reshape(tensor.shape)


def write_archive(path: Path, values: Mapping[str, npt.NDArray[np.generic]]) -> None:
    """Writes an uncompressed `.npz`, complete or not at all."""
    import numpy as np

    arrays: dict[str, Any] = dict(values)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


@dataclass(frozen=True)
class ExternalizeConstants(Pass):
    """Move large constants out of the IR into parameters.

    Each `arith.constant` of `min-elements` elements or more becomes a `smartmem.parameter`, and its values go to an
    `.npz` archive under the parameter's key. Equal constants share one parameter. Splats, bf16 and what is inside a
    `smartmem.group` stay. Without an archive the pass fails when it finds such a constant, rather than lose values;
    importers call `externalize_constants` and keep the values in memory.
    """

    argument: ClassVar[str] = "smartmem-externalize-constants"
    example: ClassVar[str] = "large_constant.mlir"

    min_elements: int = option(DEFAULT_MIN_ELEMENTS, "Constants with fewer elements stay in the IR")
    archive: str | None = option(None, "File (.npz) to write the values to")
    prefix: str = option("constant", "Keys are <prefix>.0, <prefix>.1, ...")

    def __post_init__(self) -> None:
        if self.min_elements < 1:
            raise OptionError(f"option 'min-elements' must be positive, got {self.min_elements}")
        if self.archive is not None and Path(self.archive).suffix != ".npz":
            raise OptionError(f"option 'archive' must end in .npz, got '{self.archive}'")

    def run(self, op: ir.Operation) -> None:
        """Rewrites the module and writes the archive."""
        if self.archive is None:
            constant = next(_large_constants(op, self.min_elements), None)
            if constant is not None:
                raise PassError("no archive to keep the values of this constant", op=constant, hint="give archive=")
            return
        values = externalize_constants(op, min_elements=self.min_elements, prefix=self.prefix)
        path = Path(self.archive)
        try:
            write_archive(path, values)
        except OSError as error:
            raise PassError(f"cannot write {path}: {error.strerror}") from None
