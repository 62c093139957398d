"""Scalar computations of linalg bodies, on vectors of four f32."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith

from smartmem_mlir.kernels.functions import erf, tanh
from smartmem_mlir.kernels.spirv.vectors import WIDTH, splat
from smartmem_mlir.transforms.structured import argument_number
from smartmem_mlir.transforms.view_ops import splat_constant

FUNCTIONS: dict[str, Callable[[ir.Value], ir.Value]] = {"math.erf": erf, "math.tanh": tanh}
"""SPIR-V has no erf, and drivers may overflow in tanh."""
_CONVERSIONS = ("arith.extf", "arith.truncf")
"""Values of f16 are computed in f32: what is stored is rounded, nothing before."""
_COPIED = ("arith.", "math.")
_POWER = "math.fpowi"
_MOST_FACTORS = 8


def can_evaluate(body: ir.Block) -> bool:
    """Whether a body computes on f32, f16 and truth values only, with operations that have a form on vectors."""
    for op in list(body.operations)[:-1]:
        if not op.operation.name.startswith(_COPIED):
            return False
        if op.operation.name == _POWER and _exponent(op.operation) is None:
            return False
        values = [*op.operation.results, *list(op.operation.operands)[: 1 if op.operation.name == _POWER else None]]
        for type_ in (value.type for value in values):
            is_truth = isinstance(type_, ir.IntegerType) and type_.width == 1
            if not is_truth and not isinstance(type_, ir.F32Type | ir.F16Type):
                return False
    return True


def evaluate(body: ir.Block, arguments: Sequence[ir.Value], wanted: ir.Value | None = None) -> ir.Value:
    """A value of a body, computed at the insertion point.

    Args:
        body: The body of a structured operation that :func:`can_evaluate` accepts.
        arguments: A vector for each of its first arguments.
        wanted: The value; by default the first that the body yields.
    """
    done: dict[ir.Value, ir.Value] = {}

    def visit(value: ir.Value) -> ir.Value:
        number = argument_number(value, body)
        if number is not None:
            return arguments[number]
        if value in done:
            return done[value]
        constant = splat_constant(value)
        if constant is not None:
            done[value] = splat(constant)
            return done[value]
        op = value.owner.operation
        if op.name == _POWER:
            done[value] = _power(visit(op.operands[0]), _exponent(op) or 0)
            return done[value]
        operands = [visit(operand) for operand in op.operands]
        if op.name in _CONVERSIONS:
            done[value] = operands[0]
            return done[value]
        if op.name in FUNCTIONS:
            done[value] = FUNCTIONS[op.name](operands[0])
            return done[value]
        attributes = {name: op.attributes[name] for name in op.attributes}
        f32 = ir.F32Type.get()
        elements = [f32 if isinstance(result.type, ir.F16Type) else result.type for result in op.results]
        types = [ir.VectorType.get([WIDTH], element) for element in elements]
        made = ir.Operation.create(op.name, types, operands, attributes)
        done.update(zip(op.results, made.results, strict=True))
        return done[value]

    return visit(list(body.operations)[-1].operands[0] if wanted is None else wanted)


def _exponent(op: ir.Operation) -> int | None:
    """The constant power of a `math.fpowi` that is worth multiplying out."""
    number = splat_constant(op.operands[1])
    return int(number) if number is not None and 1 <= number <= _MOST_FACTORS else None


def _power(base: ir.Value, exponent: int) -> ir.Value:
    result = base
    for _ in range(exponent - 1):
        result = arith.mulf(result, base)
    return result
