"""Scalar computations of linalg bodies, in every lane of vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mlir import ir
from mlir.dialects import arith, vector

from smartmem_mlir.transforms.structured import argument_number
from smartmem_mlir.transforms.view_ops import splat_constant

Functions = Mapping[str, Callable[[ir.Value], ir.Value]]
"""What computes an operation of one operand in place of itself, by its name."""
CONVERSIONS = ("arith.extf", "arith.truncf")
"""Between f16 and f32: values of f16 are computed in f32, so that what is stored is rounded and nothing before."""
POWER = "math.fpowi"
_MOST_FACTORS = 8


def evaluate(
    body: ir.Block, arguments: Sequence[ir.Value], lanes: int, functions: Functions, wanted: ir.Value | None = None
) -> ir.Value:
    """A value of a body, computed at the insertion point.

    Args:
        body: The body of a structured operation.
        arguments: A vector for each of its first arguments; of f32 for those of f16.
        lanes: Their lanes.
        functions: What the target computes otherwise.
        wanted: The value; by default the first that the body yields.
    """
    done: dict[ir.Value, ir.Value] = {}

    def compute(op: ir.Operation) -> list[ir.Value]:
        if op.name == "arith.constant":
            return [_splat(op, lanes)]
        if (exponent := small_power(op)) is not None:
            return [_multiplied(visit(op.operands[0]), exponent)]
        operands = [visit(operand) for operand in op.operands]
        if op.name in CONVERSIONS and _is_half(op):
            return operands
        if op.name in functions:
            return [functions[op.name](operands[0])]
        attributes = {name: op.attributes[name] for name in op.attributes}
        types = [ir.VectorType.get([lanes], _computed(result.type)) for result in op.results]
        return list(ir.Operation.create(op.name, types, operands, attributes).results)

    def visit(value: ir.Value) -> ir.Value:
        number = argument_number(value, body)
        if number is not None:
            return arguments[number]
        if value not in done:
            op = value.owner.operation
            done.update(zip(op.results, compute(op), strict=True))
        return done[value]

    return visit(list(body.operations)[-1].operands[0] if wanted is None else wanted)


def small_power(op: ir.Operation) -> int | None:
    """The constant power of a `math.fpowi` that is worth multiplying out; None for everything else."""
    number = splat_constant(op.operands[1]) if op.name == POWER else None
    return int(number) if number is not None and 1 <= number <= _MOST_FACTORS else None


def _multiplied(base: ir.Value, exponent: int) -> ir.Value:
    result = base
    for _ in range(exponent - 1):
        result = arith.mulf(result, base)
    return result


def _splat(op: ir.Operation, lanes: int) -> ir.Value:
    type_ = _computed(op.results[0].type)
    constant = arith.constant(type_, op.attributes["value"].value)
    return vector.broadcast(ir.VectorType.get([lanes], type_), constant)


def _computed(type_: ir.Type) -> ir.Type:
    return ir.F32Type.get() if isinstance(type_, ir.F16Type) else type_


def _is_half(op: ir.Operation) -> bool:
    return any(isinstance(value.type, ir.F16Type) for value in (*op.operands, *op.results))
