"""Which operations a contraction takes into its kernel: the decision, nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from smartmem_mlir.transforms.contraction_group import (
    ContractionGroup,
    Growth,
    add_step,
    contraction_factors,
    is_bordered,
    read_contraction_group,
    start_growth,
)
from smartmem_mlir.transforms.ir_walk import Positions, users
from smartmem_mlir.transforms.structured import read_structured
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view


def is_contraction(op: ir.Operation) -> bool:
    """Whether a group can start with the operation."""
    structured = read_structured(op)
    return structured is not None and contraction_factors(structured) is not None


def grow_contraction(contraction: ir.Operation, order: Positions) -> ContractionGroup | None:
    """The largest group around a contraction of which one value is used outside."""
    growth = start_growth(contraction)
    if growth is None:
        return None
    members = best = [contraction]
    outside = _Outside(order, contraction)
    pending = outside.users(contraction)
    while pending:
        op = pending.pop(0)
        if op in members or outside.depends_on_group(op) or not _joins(growth, op):
            outside.leave(op)
            continue
        members = [*members, op]
        outside.take(op)
        pending = sorted({*pending, *outside.users(op)}, key=order.of)
        if len(_escaping(members)) == 1 and not is_view(op):
            best = members
    return read_contraction_group([*best, *_border_of(best)])


def _border_of(members: Sequence[ir.Operation]) -> list[ir.Operation]:
    """The padding of what a group computes, when nothing else reads that: the kernel then writes the padded tensor."""
    (result,) = _escaping(members)
    readers = list(users(result))
    return readers if len(readers) == 1 and is_bordered(readers[0]) else []


def _joins(growth: Growth, op: ir.Operation) -> bool:
    if is_view(op):
        return read_view(op).single_map is not None
    step = read_structured(op)
    return step is not None and add_step(growth, step)


class _Outside:
    """What a growing group must not take: operations that depend on it through one that it does not hold.

    Args:
        order: Position of each operation.
        contraction: What the group starts with; nothing before it depends on the group.
    """

    def __init__(self, order: Positions, contraction: ir.Operation) -> None:
        self._order = order
        self._first = order.of(contraction)
        self._group = {contraction}
        self._depends: dict[ir.Operation, bool] = {}

    def users(self, op: ir.Operation) -> list[ir.Operation]:
        """Operations that use a result of `op`."""
        return [user for result in op.results for user in users(result) if self._order.of(user) >= 0]

    def take(self, op: ir.Operation) -> None:
        """The group takes the operation."""
        self._group.add(op)
        self._depends.clear()

    def leave(self, op: ir.Operation) -> None:
        """The operation stays outside, and what depends on it with it."""
        self._depends[op] = True

    def depends_on_group(self, op: ir.Operation) -> bool:
        """Whether an operand depends on the group other than by being one of its values."""
        inner = [defining_op(operand) for operand in op.operands]
        return any(other is not None and other not in self._group and self._reaches(other) for other in inner)

    def _reaches(self, op: ir.Operation) -> bool:
        found = self._depends.get(op)
        if found is None:
            found = op in self._group
            if not found and self._order.of(op) > self._first:
                inner = (defining_op(operand) for operand in op.operands)
                found = any(other is not None and self._reaches(other) for other in inner)
            self._depends[op] = found
        return found


def _escaping(members: Sequence[ir.Operation]) -> list[ir.Value]:
    inside = set(members)
    return [result for op in members for result in op.results if any(user not in inside for user in users(result))]
