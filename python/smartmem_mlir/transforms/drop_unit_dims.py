"""drop-unit-dims: structured operations without dimensions of extent 1.

Importers keep batch and reduced dimensions of extent 1, spelled differently by each operation, and a view stands
wherever two spellings meet. Without them, neighbours that compute over the same rows also have the same index space.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from smartmem_mlir.transforms.access_folding import fold_accesses, rebuild
from smartmem_mlir.transforms.ir_walk import block_operations, erase_dead
from smartmem_mlir.transforms.pass_base import Pass
from smartmem_mlir.transforms.structured import read_structured, static_shape


def drop_unit_dims(root: ir.Operation) -> int:
    """Rewrites structured operations over index spaces without dimensions of extent 1.

    An operation whose body reads its position in the index space stays as it is.

    Returns:
        How many operations were rewritten.
    """
    rewritten = 0
    for op in block_operations(root):
        structured = read_structured(op)
        if structured is None:
            continue
        operands = (*structured.inputs, *structured.outputs)
        if 1 not in structured.extents and not any(1 in (static_shape(value.type) or ()) for value in operands):
            continue
        plan = fold_accesses(structured, {}, {})
        results = None if plan is None else rebuild(structured, plan)
        if results is None:
            continue
        for old, new in zip(op.results, results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()
        rewritten += 1
    erase_dead(root)
    return rewritten


@dataclass(frozen=True)
class DropUnitDims(Pass):
    """Rewrite structured operations over index spaces without dimensions of extent 1.

    Views take the dimensions away in front of an operation and put them back behind it; between two operations they
    cancel.
    """

    argument: ClassVar[str] = "smartmem-drop-unit-dims"
    example: ClassVar[str] = "kept_dimension.mlir"

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        drop_unit_dims(op)
