"""Recognising scalar computations: chains of operations, maxima and sums over dimensions, tests for nan."""

from __future__ import annotations

import math
from itertools import pairwise

from mlir import ir

from smartmem_mlir.transforms.structured import StructuredOp, argument_number
from smartmem_mlir.transforms.view_ops import defining_op, splat_constant

_LOWEST = -3.4e38
"""A maximum may start from -inf or from the least number that there is."""

_NOT_EQUAL = (13, 14)
"""Predicates of arith.cmpf that, of a value and itself, hold for nan alone: une and uno."""


def chain_of(body: ir.Block) -> tuple[str, ...]:
    """Names of operations each of which uses the one before, when the last one's result is yielded; () otherwise."""
    operations = [op.operation for op in body.operations]
    for before, after in pairwise(operations):
        if len(before.results) != 1 or before.results[0] not in list(after.operands):
            return ()
    return tuple(op.name for op in operations[:-1])


def read_by(op: StructuredOp, value: ir.Value) -> ir.Value:
    """The tensor whose element a value of the body is; any other value is itself."""
    number = argument_number(value, op.body)
    if number is None:
        return value
    return op.inputs[number] if number < len(op.inputs) else op.outputs[number - len(op.inputs)]


def maximum_result(op: StructuredOp) -> int | None:
    """Which result is the maximum of the only input, when nothing uses the others (positions of the maximum)."""
    for i, yielded in enumerate(list(op.body.operations)[-1].operands):
        inner = defining_op(yielded)
        if inner is None or inner.name not in ("arith.maximumf", "arith.maxnumf"):
            continue
        start = _fill(op.outputs[i])
        others = [result for j, result in enumerate(op.op.results) if j != i]
        if start is None or start > _LOWEST or any(True for other in others for _ in other.uses):
            return None
        return i if _arguments(op, inner) == {0, len(op.inputs) + i} else None
    return None


def sum_result(op: StructuredOp) -> int | None:
    """Which result is the sum of the only input: 0, or None when there is none."""
    if len(op.outputs) != 1 or chain_of(op.body) != ("arith.addf",) or _fill(op.outputs[0]) != 0.0:
        return None
    return 0 if _arguments(op, op.body.operations[0].operation) == {0, 1} else None


def is_nan_test(op: StructuredOp, value: ir.Value) -> bool:
    """Whether an elementwise operation says which elements of a tensor are nan."""
    if chain_of(op.body) != ("arith.cmpf",) or len({*op.accesses}) != 1:
        return False
    inner = op.body.operations[0].operation
    predicate = ir.IntegerAttr(inner.attributes["predicate"]).value
    return predicate in _NOT_EQUAL and all(read_by(op, operand) == value for operand in inner.operands)


def selected(op: StructuredOp) -> tuple[ir.Value, ir.Value, ir.Value] | None:
    """Condition, value if true and value if false of an elementwise selection; tensors that are read are read alike."""
    if chain_of(op.body) != ("arith.select",):
        return None
    condition, true, false = (read_by(op, operand) for operand in op.body.operations[0].operation.operands)
    accesses = zip(op.inputs, op.input_accesses, strict=True)
    whole = {access for value, access in accesses if splat_constant(value) is None}
    return (condition, true, false) if len(whole) == 1 else None


def _arguments(op: StructuredOp, inner: ir.Operation) -> set[int | None]:
    return {argument_number(value, op.body) for value in inner.operands}


def _fill(value: ir.Value) -> float | None:
    """The number that a tensor is filled with."""
    op = defining_op(value)
    if op is None or op.name != "linalg.fill":
        return None
    number = splat_constant(op.operands[0])
    return None if number is None or math.isnan(number) else number
