"""What a group may take, whatever it computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir

from smartmem_mlir.transforms.ir_walk import Positions, users
from smartmem_mlir.transforms.view_ops import defining_op, is_view


def grow(first: ir.Operation, order: Positions, join: Callable[[ir.Operation], bool]) -> list[ir.Operation]:
    """The largest group that starts with an operation and of which one value, no view's, is used outside.

    Args:
        first: The operation.
        order: Positions of the function's operations.
        join: Takes an operation into the group, or refuses it.
    """
    members = best = [first]
    outside = _Outside(order, first)
    pending = outside.users(first)
    while pending:
        op = pending.pop(0)
        if op in members or outside.depends_on_group(op) or not join(op):
            outside.leave(op)
            continue
        members = [*members, op]
        outside.take(op)
        pending = sorted({*pending, *outside.users(op)}, key=order.of)
        if len(escaping(members)) == 1 and not is_view(op):
            best = members
    return best


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
        """Whether an operation depends on the group. Without recursion: a network is deeper than Python's stack."""
        pending = [op]
        while pending:
            current = pending[-1]
            if current in self._depends:
                pending.pop()
                continue
            inner = []
            if current not in self._group and self._order.of(current) > self._first:
                inner = [other for operand in current.operands if (other := defining_op(operand)) is not None]
            unknown = [other for other in inner if other not in self._depends]
            if unknown:
                pending += unknown
                continue
            self._depends[current] = current in self._group or any(self._depends[other] for other in inner)
            pending.pop()
        return self._depends[op]


def escaping(members: Sequence[ir.Operation]) -> list[ir.Value]:
    """Results that operations outside use."""
    inside = set(members)
    return [result for op in members for result in op.results if any(user not in inside for user in users(result))]
