"""What becomes of the views in a group once a kernel computes it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mlir import ir

from smartmem_mlir.transforms.claims import tell
from smartmem_mlir.transforms.contraction_group import is_bordered
from smartmem_mlir.transforms.ir_walk import users
from smartmem_mlir.transforms.structured import is_structured
from smartmem_mlir.transforms.view_ops import is_view


def tell_views(group: ir.Operation, staged: Mapping[ir.Value, int] = MappingProxyType({})) -> None:
    """Records that a kernel reads or writes through each view of a `smartmem.group`, or what it copies of it.

    Args:
        group: The group.
        staged: Bytes that the kernel copies inside of itself, by the result of the view.
    """
    members = [inner.operation for inner in group.regions[0].blocks[0].operations]
    for op in members:
        if not is_view(op):
            continue
        readers = _readers(op)
        if is_bordered(op) and not readers:
            tell(op, "written", [member for member in members if is_structured(member)][-1:])
        elif op.results[0] in staged:
            tell(op, "staged", readers, reason=f"{staged[op.results[0]]} bytes in all, border and overlap included")
        else:
            tell(op, "read", readers)


def _readers(view: ir.Operation) -> list[ir.Operation]:
    """The operations that compute with the elements of a view, behind further views."""
    found: list[ir.Operation] = []
    for user in users(view.results[0]):
        found += _readers(user) if is_view(user) else [user] if is_structured(user) else []
    return found
