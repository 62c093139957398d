"""What a compiled function says about memory that its caller passes; `iree.entry` is where it is made to say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from smartmem_mlir.iree.vm_module import open_module
from smartmem_mlir.signature import TensorSpec

Entry = Literal["plain", "in-place"]
"""Who provides memory for results and intermediates: the function itself, or its caller."""

OUTPUT, TRANSIENTS = "iree.abi.output", "iree.abi.transients"
"""Attributes by which IREE knows such arguments."""

_DECLARATION, _SIZE = "iree.abi.declaration", "iree.abi.transients.size.constant"


def transient_bytes(reflection: Mapping[str, str]) -> int | None:
    """Bytes for intermediates that a call must be given; None where the function allocates them.

    Args:
        reflection: What IREE's runtime knows of the function.
    """
    if TRANSIENTS not in reflection.get(_DECLARATION, ""):
        return None
    # No size: it has no intermediates.
    return int(reflection.get(_SIZE, "0"))


def read_transient_bytes(vmfb: Path, function: str = "main") -> int | None:
    """:func:`transient_bytes` of a function of a module in a file."""
    import iree.runtime as rt

    module = open_module(rt.VmInstance(), vmfb)
    return transient_bytes(module.lookup_function(function).reflection)


def storage_flags(outputs: Sequence[TensorSpec], transients: int | None) -> list[str]:
    """How IREE's command line tools pass that memory, after the inputs."""
    if transients is None:
        return []
    return [f"--input=&{max(size, 1)}xi8" for size in (*(spec.nbytes for spec in outputs), transients)]
