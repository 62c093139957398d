"""raise-views: every data-movement operation becomes a `smartmem.view`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from smartmem_mlir.transforms.claims import claim_movement, is_recorded, tell
from smartmem_mlir.transforms.ir_walk import block_operations
from smartmem_mlir.transforms.movement import as_view, definition, why_not_view
from smartmem_mlir.transforms.pass_base import Pass
from smartmem_mlir.transforms.view_ops import write_view


def raise_views(root: ir.Operation) -> int:
    """Replaces data-movement operations below `root` by views.

    Returns:
        How many operations were replaced.
    """
    raised = 0
    for op in block_operations(root):
        found = as_view(op)
        if found is None:
            reason = why_not_view(op)
            if reason:
                tell(op, "copy", operation=op.name, reason=reason)
            continue
        view, sources = found
        with ir.InsertionPoint(op), op.location:
            value = write_view(view, sources, op.results[0].type.element_type)
        if is_recorded():
            claim_movement(op, view, definition(op))
            tell(op, "cancelled" if value in sources else "raised")
        op.results[0].replace_all_uses_with(value)
        op.erase()
        raised += 1
    return raised


@dataclass(frozen=True)
class RaiseViews(Pass):
    """Turn every data-movement operation into a view.

    Transposes, reshapes, slices, concatenations, paddings, broadcasts and gathers at constant positions become
    `smartmem.view`, in whatever spelling they come, `linalg.generic` included. A gather at run-time positions stays.
    """

    argument: ClassVar[str] = "smartmem-raise-views"
    example: ClassVar[str] = "window_partition.mlir"

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        raise_views(op)
