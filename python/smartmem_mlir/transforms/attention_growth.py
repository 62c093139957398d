"""Finding the attention that starts with a contraction."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from mlir import ir

from smartmem_mlir.transforms.attention_group import AttentionGroup, AttentionReader
from smartmem_mlir.transforms.ir_walk import Positions, users
from smartmem_mlir.transforms.scalar_bodies import maximum_result
from smartmem_mlir.transforms.structured import StructuredOp, read_structured
from smartmem_mlir.transforms.view_ops import is_view


def possible_scores(operations: Sequence[ir.Operation]) -> set[ir.Value]:
    """What a softmax follows by way of views and elementwise operations alone.

    Attention starts with a contraction whose result is among them; of most, the rest of the function would be searched
    in vain.

    Args:
        operations: Those of a function, in program order.
    """
    leading: set[ir.Value] = set()
    # First results of softmaxes, and of what leads to one.
    heads: set[ir.Value] = set()
    for op in reversed(operations):
        if not len(op.results):
            continue
        readers = {value: [user.results[0] for user in users(value) if len(user.results)] for value in op.results}
        leads = [value for value, firsts in readers.items() if not heads.isdisjoint(firsts)]
        leading.update(leads)
        structured = read_structured(op)
        carried = is_view(op) or (structured is not None and structured.is_elementwise)
        if (leads and carried) or _begins_softmax(op, structured):
            heads.add(op.results[0])
    return leading


def _begins_softmax(op: ir.Operation, structured: StructuredOp | None) -> bool:
    if op.name == "linalg.softmax":
        return True
    if structured is None or structured.is_elementwise or structured.is_contraction:
        return False
    return maximum_result(structured) is not None


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
