"""Vectors of four f32: what a texel is, and what threads compute with."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, vector

WIDTH = 4
"""Elements of a vector."""


def vector_type() -> ir.VectorType:
    """The type of every vector of numbers."""
    return ir.VectorType.get([WIDTH], ir.F32Type.get())


def splat(value: ir.Value | float) -> ir.Value:
    """A number in every lane."""
    if not isinstance(value, ir.Value):
        value = arith.constant(ir.F32Type.get(), value)
    return vector.broadcast(vector_type(), value)
