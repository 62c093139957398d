"""Scalar computations of linalg bodies, on vectors of four f32."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir

from smartmem_mlir.kernels.cpu.functions import erf, tanh
from smartmem_mlir.kernels.cpu.lanes import splat
from smartmem_mlir.kernels.spirv.storage import WIDTH
from smartmem_mlir.transforms.structured import argument_number
from smartmem_mlir.transforms.view_ops import splat_constant

FUNCTIONS: dict[str, Callable[[ir.Value], ir.Value]] = {"math.erf": erf, "math.tanh": tanh}
"""SPIR-V has no erf, and drivers may overflow in tanh."""
_CONVERSIONS = ("arith.extf", "arith.truncf")
"""Values of f16 are computed in f32: what is stored is rounded, nothing before."""
_COPIED = ("arith.", "math.")


def can_evaluate(body: ir.Block) -> bool:
    """Whether a body computes on f32, f16 and truth values only, with operations that have a form on vectors."""
    for op in list(body.operations)[:-1]:
        if not op.operation.name.startswith(_COPIED):
            return False
        for result in op.operation.results:
            is_truth = isinstance(result.type, ir.IntegerType) and result.type.width == 1
            if not is_truth and not isinstance(result.type, ir.F32Type | ir.F16Type):
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
            done[value] = splat(constant, WIDTH)
            return done[value]
        op = value.owner.operation
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
