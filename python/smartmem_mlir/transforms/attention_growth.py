"""Finding the attention that starts with a contraction."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from mlir import ir

from smartmem_mlir.transforms.attention_group import AttentionGroup, AttentionReader
from smartmem_mlir.transforms.ir_walk import Positions, users


def grow_attention(contraction: ir.Operation, position: Positions) -> AttentionGroup | None:
    """The largest attention that starts with a contraction and of which one value is used outside.

    Args:
        contraction: Its first operation.
        position: Where each operation of the block stands.
    """
    reader = AttentionReader.start(contraction)
    if reader is None:
        return None
    best: AttentionGroup | None = None
    operations = {position.of(contraction): contraction}
    pending: list[int] = []

    def add_users(op: ir.Operation) -> None:
        for result in op.results:
            for user in users(result):
                at = position.of(user)
                if at >= 0 and at not in operations:
                    operations[at] = user
                    heapq.heappush(pending, at)

    add_users(contraction)
    while pending:
        op = operations[heapq.heappop(pending)]
        if not reader.add(op):
            continue
        add_users(op)
        group = reader.group()
        if group is not None and _escaping(group.members) == [group.output.value]:
            best = group
    return best


def _escaping(members: Sequence[ir.Operation]) -> list[ir.Value]:
    inside = set(members)
    return [result for op in members for result in op.results if any(user not in inside for user in users(result))]
