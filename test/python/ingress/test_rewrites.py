"""A rewritten model computes what the original does, in ONNX Runtime, and is made of what torch-mlir gets right.

The node cases (`test_node_cases.py`) check the same through IREE on ONNX's own examples; here are other ranks, sizes
and attributes, and the forms that real models have.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from forms import I64, REWRITTEN, i64
from kept_forms import KEPT
from onnx import TensorProto
from onnx_cases import random_feeds, run_onnxruntime, single, specialized, value

from smartmem_mlir.errors import UnsupportedModelError

NOT_KEPT = {
    "AveragePool": ("ceil_mode",), "Col2Im": (), "Compress": (), "ConvTranspose": ("group", "auto_pad"), "CumProd": (),
    "CumSum": (), "DFT": (), "DepthToSpace": (), "Det": (), "Dropout": (), "GRU": (), "GridSample": (),
    "GroupNormalization": (), "LSTM": (), "LpNormalization": (), "LpPool": (), "MaxPool": ("ceil_mode",),
    "MeanVarianceNormalization": (), "QuantizeLinear": (), "DequantizeLinear": (), "RNN": (), "Resize": (),
    "ReverseSequence": (), "MatMulInteger": (), "ConvInteger": (), "QLinearMatMul": (),
    "QLinearConv": (), "STFT": (), "ScatterElements": (), "ScatterND": (), "SpaceToDepth": (), "TopK": (),
}  # fmt: skip
"""Operators that must not reach torch-mlir: at all, or only without these attributes."""


@pytest.mark.parametrize("name", [*REWRITTEN, *KEPT])
def test_same_numbers(name: str) -> None:
    original = {**REWRITTEN, **KEPT}[name]()
    rewritten = specialized(original)
    for node in rewritten.graph.node:
        refused = NOT_KEPT.get(node.op_type)
        assert refused is None or (refused and not {a.name for a in node.attribute} & set(refused)), node
    feeds = random_feeds(original)
    expected, found = run_onnxruntime(original, feeds), run_onnxruntime(rewritten, feeds)
    assert len(found) == len(expected)
    for want, got in zip(expected, found, strict=True):
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(
    ("proto", "reason"),
    [
        (single("Det", {"x": value("x", [4, 4])}), "above 3 x 3"),
        (single("TopK", {"x": value("x", [1, 100_000]), "k": i64(3)}, outputs=2), "100000 x 100000 pairs"),
        (single("RandomNormalLike", {"x": value("x", [4])}), "random"),
        (
            single("Dropout", {"x": value("x", [4]), "r": np.float32(0.5), "t": np.asarray(True)}),
            "training mode",
        ),
        (
            single("MaxPool", {"x": value("x", [1, 1, 4, 4])}, outputs=2, kernel_shape=[2, 2], storage_order=1),
            "column-major",
        ),
        (
            single("MaxPool", {"x": value("x", [1, 2, 4, 4])}, outputs=2, kernel_shape=[2, 2]),
            "more than one plane",
        ),
        (single("Mod", {"a": value("a", [4], TensorProto.DOUBLE), "b": np.float64(2)}, opset=18), "no f64 remainder"),
        (single("Pow", {"a": value("a", [4], I64), "b": value("b", [4], I64)}), "powers of integers"),
        (single("Reshape", {"x": value("x", [4]), "s": value("s", [2], I64)}), "only known when the model runs"),
    ],
)
def test_refused_with_a_reason(proto: onnx.ModelProto, reason: str) -> None:
    with pytest.raises(UnsupportedModelError, match=reason):
        specialized(proto)
