"""Finding the attention that starts with a contraction."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from math import prod
from typing import Protocol, TypeVar

from mlir import ir

from smartmem_mlir.transforms.attention_group import AttentionGroup, AttentionReader
from smartmem_mlir.transforms.computed_reads import ComputedRead
from smartmem_mlir.transforms.contraction_group import Read
from smartmem_mlir.transforms.ir_walk import CONSTANTS, Positions, users
from smartmem_mlir.transforms.linear_attention_group import LinearAttentionGroup, LinearAttentionReader
from smartmem_mlir.transforms.scalar_bodies import maximum_result
from smartmem_mlir.transforms.structured import StructuredOp, read_structured
from smartmem_mlir.transforms.view_ops import defining_op, is_view

MOST_STATE = 8192
"""Elements of the product of keys and values, half a core's first-level cache and more."""

Found = TypeVar("Found", AttentionGroup, LinearAttentionGroup)
Made = TypeVar("Made", AttentionGroup, LinearAttentionGroup, covariant=True)


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


class Reader(Protocol[Made]):
    """Reads operations in program order, see `AttentionReader`."""

    def add(self, op: ir.Operation) -> bool:
        """Takes the next operation, or refuses it."""

    def group(self) -> Made | None:
        """What was read, if it is a group yet."""


def grow_attention(contraction: ir.Operation, position: Positions) -> AttentionGroup | None:
    """The largest attention that starts with a contraction and of which one value is used outside.

    Args:
        contraction: Its first operation.
        position: Where each operation of the block stands.
    """
    reader = AttentionReader.start(contraction)
    return None if reader is None else grow_with(reader, contraction, position)


def grow_linear_attention(contraction: ir.Operation, position: Positions) -> LinearAttentionGroup | None:
    """The same for an attention without a softmax, whose state the contraction computes.

    None where there is but one matrix, as with two layers of a network in a row, which many workers can share only as
    two kernels; where a weight is among queries, keys and values, which a kernel of one product reads as it was laid
    out when the model was compiled; and where the state is too large to stay with a core.
    """
    reader = LinearAttentionReader.start(contraction)
    group = None if reader is None else grow_with(reader, contraction, position)
    if group is None:
        return None
    matrices, state = (prod(group.extents[d] for d in part) for part in (group.outer, (*group.depth, *group.values)))
    is_taken = matrices > 1 and state <= MOST_STATE and not any(map(_reads_weight, group.factors))
    return group if is_taken else None


def _reads_weight(factor: ComputedRead) -> bool:
    sources = [defining_op(part.source.value) for part in factor.parts if isinstance(part.source, Read)]
    return any(op is not None and op.name in CONSTANTS for op in sources)


def grow_with(reader: Reader[Found], contraction: ir.Operation, position: Positions) -> Found | None:
    """The largest group that a reader reads and of which one value is used outside."""
    best: Found | None = None
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
