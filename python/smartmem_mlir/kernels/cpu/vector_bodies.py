"""Scalar computations of linalg bodies, in every lane of vectors."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from smartmem_mlir.kernels.cpu.lanes import splat
from smartmem_mlir.kernels.functions import FUNCTIONS
from smartmem_mlir.transforms.structured import argument_number
from smartmem_mlir.transforms.view_ops import splat_constant


def evaluate(body: ir.Block, arguments: Sequence[ir.Value], lanes: int, wanted: ir.Value | None = None) -> ir.Value:
    """A value of a body, computed at the insertion point.

    Args:
        body: The body of a structured operation.
        arguments: A vector for each of its first arguments.
        lanes: Their lanes.
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
            done[value] = splat(constant, lanes)
            return done[value]
        op = value.owner.operation
        operands = [visit(operand) for operand in op.operands]
        if op.name in FUNCTIONS:
            done[value] = FUNCTIONS[op.name](operands[0])
            return done[value]
        attributes = {name: op.attributes[name] for name in op.attributes}
        types = [ir.VectorType.get([lanes], result.type) for result in op.results]
        made = ir.Operation.create(op.name, types, operands, attributes)
        done.update(zip(op.results, made.results, strict=True))
        return done[value]

    return visit(list(body.operations)[-1].operands[0] if wanted is None else wanted)
