"""Which scalar computations shaders take, and how they compute them."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from smartmem_mlir.kernels import bodies
from smartmem_mlir.kernels.functions import erf, tanh
from smartmem_mlir.kernels.spirv.vectors import WIDTH

_FUNCTIONS: bodies.Functions = {"math.erf": erf, "math.tanh": tanh}
"""SPIR-V has no erf, and drivers may overflow in tanh."""
_COPIED = ("arith.", "math.")


def can_evaluate(body: ir.Block) -> bool:
    """Whether a body computes on f32, f16 and truth values only, with operations that have a form on vectors."""
    return all(_is_copied(op.operation) for op in list(body.operations)[:-1])


def evaluate(body: ir.Block, arguments: Sequence[ir.Value], wanted: ir.Value | None = None) -> ir.Value:
    """As in `kernels.bodies`, of a body that :func:`can_evaluate` accepts, on vectors of four."""
    return bodies.evaluate(body, arguments, WIDTH, _FUNCTIONS, wanted)


def _is_copied(op: ir.Operation) -> bool:
    if op.name == "arith.constant":
        # Integers are powers; what uses them says so.
        return True
    is_power = bodies.small_power(op) is not None
    values = [*op.results, *list(op.operands)[: 1 if is_power else None]]
    return op.name.startswith(_COPIED) and all(_is_computed(value.type) for value in values)


def _is_computed(type_: ir.Type) -> bool:
    is_truth = isinstance(type_, ir.IntegerType) and type_.width == 1
    return is_truth or isinstance(type_, ir.F32Type | ir.F16Type)
