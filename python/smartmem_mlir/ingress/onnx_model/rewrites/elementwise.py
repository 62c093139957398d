"""Elementwise operators outside the range where the lowering is right."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import onnx

from smartmem_mlir.ingress.onnx_model.attributes import attribute
from smartmem_mlir.ingress.onnx_model.rewrites import build
from smartmem_mlir.ingress.onnx_model.rewrites.registry import Refuse, rewrite

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer


@rewrite("Pow")
def power(graph: Specializer, node: onnx.NodeProto) -> str | None:
    """Powers of negative bases by the base's magnitude and the exponent's parity.

    With an exponent that is no constant scalar, IREE computes `exp(y * log(x))`, which is NaN for a negative x also
    where the power is defined, that is for a whole y.
    """
    base, exponent = node.input
    if graph.type(exponent).elements == 1 and graph.constant(exponent) is not None:
        return None
    if not graph.type(base).is_float:
        raise Refuse("powers of integers with exponents that are no constant scalar are not supported")
    y = build.cast(graph, exponent, graph.type(base).element_type)
    zero, half = build.scalar(graph, 0, base), build.scalar(graph, 0.5, base)
    magnitude = graph.keep("Pow", [graph.emit("Abs", [base]), y])
    halves = graph.emit("Mul", [y, half])
    odd = graph.emit("Not", [graph.emit("Equal", [halves, graph.emit("Floor", [halves])])])
    whole = graph.emit("Equal", [y, graph.emit("Floor", [y])])
    signed = graph.emit("Where", [odd, graph.emit("Neg", [magnitude]), magnitude])
    undefined = build.scalar(graph, math.nan, base)
    of_negative = graph.emit("Where", [whole, signed, undefined])
    return str(graph.emit("Where", [graph.emit("Less", [base, zero]), of_negative, magnitude]))


@rewrite("Mod")
def double_modulo(graph: Specializer, node: onnx.NodeProto) -> None:
    """IREE lowers a remainder of the divisor's sign to a call of `fmod`, and links none for f64."""
    if graph.type(node.input[0]).element_type == onnx.TensorProto.DOUBLE and not attribute(node, "fmod", 0):
        raise Refuse("IREE has no f64 remainder; use f32 or fmod=1")
