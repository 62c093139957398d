"""What every importer returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from smartmem_mlir.errors import OptionError
from smartmem_mlir.signature import Parameter, TensorSpec


@dataclass(frozen=True)
class ImportOptions:
    """How to import a model.

    Args:
        dims: Sizes of symbolic dimensions, by name (`--dim batch=1`), or of `input:axis` for unnamed ones.
        dtype: Floating-point type to compute in; None keeps the model's own. Conversion happens here and not in
            IREE, whose `--iree-input-demote-f32-to-f16` breaks the function boundary.
        trusted: Whether a file may run code while it is read. Only `.pt2` archives can: torch unpickles them.
    """

    dims: Mapping[str, int] = field(default_factory=dict)
    dtype: Literal["f32", "f16"] | None = None
    trusted: bool = False


def require_trust(path: Path, trusted: bool) -> None:
    """Refuse to have torch load a file unless somebody has said that it may run code.

    Raises:
        OptionError: Nobody has.
    """
    if not trusted:
        raise OptionError(
            "torch runs code from a .pt2 archive when it loads one",
            hint="if you made the file yourself, pass --trust-model (in Python trusted=True); else use ONNX",
            file=path,
        )


@dataclass(frozen=True)
class ImportedModel:
    """A model as `func.func @main` on tensors, its weights outside.

    Args:
        name: Short name, from the file's stem.
        source: The file it came from (None for a torch module in memory).
        kind: Which importer made it; decides the reference that `verify` runs.
        module: MLIR 22 text: linalg on tensors, each weight a `smartmem.parameter @key`.
        inputs: The arguments of `@main`, in order.
        outputs: The results of `@main`, in order.
        parameters: The weights by key.
    """

    name: str
    source: Path | None
    kind: Literal["onnx", "torch", "mlir"]
    module: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    parameters: Mapping[str, Parameter]
