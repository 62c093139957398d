"""Index arithmetic of shaders: i32, and unsigned wherever it divides, because addresses are never negative."""

from __future__ import annotations

from collections.abc import Mapping

from mlir import ir
from mlir.dialects import arith

from smartmem_mlir.index_maps.expr import Dim, Expr, FloorDiv


def i32() -> ir.IntegerType:
    """The type of every index."""
    return ir.IntegerType.get_signless(32)


def constant(value: int) -> ir.Value:
    """A number."""
    return arith.constant(i32(), value)


def add(a: ir.Value, b: ir.Value | int) -> ir.Value:
    """a + b."""
    if isinstance(b, int):
        return a if b == 0 else arith.addi(a, constant(b))
    return arith.addi(a, b)


def scale(a: ir.Value, factor: int) -> ir.Value:
    """a * factor."""
    return a if factor == 1 else arith.muli(a, constant(factor))


def divide(a: ir.Value, divisor: int) -> ir.Value:
    """a // divisor of a number that is not negative."""
    return a if divisor == 1 else arith.divui(a, constant(divisor))


def remainder(a: ir.Value, divisor: int) -> ir.Value:
    """a % divisor of a number that is not negative."""
    return constant(0) if divisor == 1 else arith.remui(a, constant(divisor))


def at_most(a: ir.Value, most: int) -> ir.Value:
    """min(a, most) of numbers that are not negative."""
    return arith.minui(a, constant(most))


def less(a: ir.Value, bound: ir.Value | int) -> ir.Value:
    """Whether a < bound, of numbers that are not negative."""
    bound = constant(bound) if isinstance(bound, int) else bound
    return arith.cmpi(arith.CmpIPredicate.ult, a, bound)


def evaluate(expr: Expr, values: Mapping[int, ir.Value]) -> ir.Value:
    """A quasi-affine expression.

    Args:
        expr: Not negative, and so is what it divides.
        values: Of each dimension that occurs.
    """
    total: ir.Value | None = None
    for atom, coefficient in expr.terms:
        if isinstance(atom, Dim):
            value = values[atom.index]
        else:
            argument = evaluate(atom.arg, values)
            value = divide(argument, atom.value) if isinstance(atom, FloorDiv) else remainder(argument, atom.value)
        term = scale(value, coefficient)
        total = term if total is None else arith.addi(total, term)
    return constant(expr.const) if total is None else add(total, expr.const)
