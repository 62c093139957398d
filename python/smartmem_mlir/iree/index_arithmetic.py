"""Indices with divisions, guarded so that IREE does not take the elements that they name for neighbours.

MLIR vectorises `tensor.extract` as a load of neighbours if its last index is a sum with the innermost loop's index as
one term, whatever the other terms are: a roll, `x[i + 2 - (i + 2) floordiv 7 * 7]`, is read as the seven elements from
2 on. A maximum in place of the sum makes it a gather; no index is negative, so the maximum with 0 changes nothing.
"""

from __future__ import annotations

from mlir.dialects import arith
from mlir.ir import (
    AffineAddExpr,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMulExpr,
    AffineSymbolExpr,
    Block,
    IndexType,
    InsertionPoint,
    Operation,
    ShapedType,
    Value,
    WalkOrder,
    WalkResult,
)

_APPLY = "affine.apply"


def guard_divisions(root: Operation) -> None:
    """Guard the last index of each `tensor.extract` that comes from a division or remainder.

    The last is that of the last dimension of more than one element: IREE drops the others.
    """
    found: list[tuple[Operation, int]] = []

    def visit(op: Operation) -> WalkResult:
        if op.name == "tensor.extract":
            shape = ShapedType(op.operands[0].type).shape
            last = max((axis for axis, extent in enumerate(shape) if extent != 1), default=None)
            if last is not None and _is_divided(op.operands[1 + last]):
                found.append((op, 1 + last))
        return WalkResult.ADVANCE

    root.walk(visit, WalkOrder.PRE_ORDER)
    for op, position in found:
        with InsertionPoint(op), op.location:
            op.operands[position] = arith.maxsi(op.operands[position], arith.constant(IndexType.get(), 0))


def _is_divided(index: Value) -> bool:
    """Whether an `affine.apply` with a division or remainder is among what an index is computed from."""
    pending, seen = [index], set[Value]()
    while pending:
        value = pending.pop()
        if value in seen or isinstance(value.owner, Block):
            continue
        seen.add(value)
        owner = value.owner.operation
        if owner.name == _APPLY and _divides(owner.attributes["map"].value.results[0]):
            return True
        if owner.name == _APPLY or owner.name.startswith("arith."):
            pending.extend(owner.operands)
    return False


def _divides(expr: AffineExpr) -> bool:
    if isinstance(expr, (AffineDimExpr, AffineSymbolExpr, AffineConstantExpr)):
        return False
    return not isinstance(expr, (AffineAddExpr, AffineMulExpr)) or _divides(expr.lhs) or _divides(expr.rhs)
