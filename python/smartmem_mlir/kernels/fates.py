"""What becomes of the views in a group once a kernel computes it."""

from __future__ import annotations

from mlir import ir

from smartmem_mlir.transforms.claims import tell
from smartmem_mlir.transforms.contraction_group import is_bordered
from smartmem_mlir.transforms.ir_walk import users
from smartmem_mlir.transforms.structured import is_structured
from smartmem_mlir.transforms.view_ops import is_view


def tell_views(group: ir.Operation) -> None:
    """Records that a kernel reads or writes through each view of a `smartmem.group`."""
    members = [inner.operation for inner in group.regions[0].blocks[0].operations]
    for op in members:
        if not is_view(op):
            continue
        readers = _readers(op)
        if is_bordered(op) and not readers:
            tell(op, "written", [member for member in members if is_structured(member)][-1:])
        else:
            tell(op, "read", readers)


def _readers(view: ir.Operation) -> list[ir.Operation]:
    """The operations that compute with the elements of a view, behind further views."""
    found: list[ir.Operation] = []
    for user in users(view.results[0]):
        found += _readers(user) if is_view(user) else [user] if is_structured(user) else []
    return found
