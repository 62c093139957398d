"""Folding gives what ONNX's backend tests expect, for every case, its operands made constants."""

from __future__ import annotations

import node_cases
import pytest

from smartmem_mlir.errors import SmartMemError
from smartmem_mlir.ingress.model import ImportOptions
from smartmem_mlir.ingress.onnx_importer import static_graph
from smartmem_mlir.ingress.onnx_model import reader
from smartmem_mlir.ingress.onnx_model.reader import read_proto

SHAPE_OPERATORS = {
    "Add", "And", "ArgMax", "Cast", "Ceil", "Clip", "Compress", "Concat", "ConstantOfShape", "Div", "Equal", "Expand",
    "Floor", "Gather", "GatherElements", "GatherND", "Greater", "Less", "Max", "Min", "Mod", "Mul", "Neg", "NonZero",
    "Not", "Or", "Range", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "Shape", "Size", "Slice",
    "Split", "Squeeze", "Sub", "Tile", "Transpose", "Trilu", "Unsqueeze", "Where",
}  # fmt: skip
"""The operators of shape arithmetic, each of which must fold in at least one case."""


def test_folded_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_INLINE_FLOATS", 1 << 20)  # so that float operands are no weights
    monkeypatch.setattr(reader, "MAX_INLINE_BYTES", 1 << 22)
    folded: set[str] = set()
    wrong: list[str] = []
    for case in node_cases.load_cases():
        if len(case.model.graph.node) != 1 or node_cases.scope(case) not in ("float", "index"):
            continue
        model = node_cases.model_of(case, range(len(case.inputs)))
        try:
            graph = static_graph(read_proto(model, None), ImportOptions())
        except SmartMemError:
            continue  # refusals are what test_node_cases lists
        if all(name in graph.constants for name in graph.outputs):
            results = [graph.constants[name] for name in graph.outputs]
            difference = node_cases.difference(case, results, [node_cases.array_of(v) for v in case.outputs])
            wrong += [f"{case.name}: {difference}"] if difference else []
            folded.add(case.operator)
    assert not wrong
    assert folded >= SHAPE_OPERATORS, f"not folded: {SHAPE_OPERATORS - folded}"
