"""Operations into a `smartmem.group`, and copies of operations elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from smartmem_mlir.dialects import smartmem
from smartmem_mlir.transforms.view_ops import defining_op, is_view

_REPEATED = frozenset({"tensor.empty", "linalg.fill", "arith.constant"})
"""Operations that are repeated inside a group rather than read by it, when all they make is one number."""


def outline(members: Sequence[ir.Operation], result: ir.Value) -> ir.Operation:
    """Makes a group of copies of operations, in front of the last of them.

    Args:
        members: In program order.
        result: What the group computes: a result of one of them.

    Returns:
        The group. The members stay; whoever used the result does not use the group yet.
    """
    inside = {value for op in members for value in op.results}
    captured = dict.fromkeys(value for op in members for value in captured_values(op) if value not in inside)
    operands = [value for value in captured if not _is_repeated(value)]
    last = members[-1]
    # A border behind what is computed has the name of the operation that reads it.
    named = next((op for op in reversed(members) if not is_view(op)), last)
    with ir.InsertionPoint(last), named.location:
        group = smartmem.GroupOp([result.type], operands)
    block = group.body.blocks.append(*[operand.type for operand in operands])
    mapping: dict[ir.Value, ir.Value] = dict(zip(operands, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for op in members:
            clone_into(op, mapping)
        smartmem.YieldOp([mapping[result]])
    return group.operation


def captured_values(op: ir.Operation) -> list[ir.Value]:
    """What an operation reads, in its regions too, that is not made inside it."""
    found = list(op.operands)
    for region in op.regions:
        for block in region.blocks:
            made = {*block.arguments, *(result for inner in block.operations for result in inner.operation.results)}
            found += [v for inner in block.operations for v in captured_values(inner.operation) if v not in made]
    return found


def clone_into(op: ir.Operation, mapping: dict[ir.Value, ir.Value]) -> None:
    """Copies an operation to the insertion point, and before it the start values and constants that it uses.

    Args:
        op: The operation.
        mapping: What stands for its operands there; its results are added.
    """
    for value in captured_values(op):
        if value not in mapping:
            inner = defining_op(value)
            assert inner is not None, "block arguments are operands of the group"
            clone_into(inner, mapping)
    copy = op.clone()
    _replace_operands(copy, mapping)
    mapping.update(zip(op.results, copy.results, strict=True))


def _is_repeated(value: ir.Value) -> bool:
    op = defining_op(value)
    if op is None or op.name not in _REPEATED:
        return False
    if op.name == "arith.constant":
        return not isinstance(value.type, ir.RankedTensorType) or ir.DenseElementsAttr(op.attributes["value"]).is_splat
    return all(_is_repeated(operand) for operand in op.operands)


def _replace_operands(op: ir.Operation, mapping: dict[ir.Value, ir.Value]) -> None:
    for number, operand in enumerate(op.operands):
        if operand in mapping:
            op.operands[number] = mapping[operand]
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                _replace_operands(inner.operation, mapping)
