"""A gather from a weight at known positions is a weight, with the values that ONNX Runtime gathers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_cases import model, random_feeds, run_onnxruntime, save, value

from smartmem_mlir.ingress import ImportOptions, load
from smartmem_mlir.ingress.onnx_model import reader

RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((23, 6)).astype(np.float32)


def gathering(op: str, positions: np.ndarray, shape: list[int], **attributes: int) -> onnx.ModelProto:
    nodes = [
        helper.make_node(op, ["table", "positions"], ["taken"], name="take", **attributes),
        helper.make_node("Add", ["x", "taken"], ["y"], name="add"),
    ]
    return model(nodes, [value("x", shape)], ["y"], {"table": TABLE, "positions": positions})


CASES = {
    "rows": gathering("Gather", RNG.integers(0, 23, (5, 4)), [5, 4, 6]),
    "from-the-end": gathering("Gather", np.array([-1, 0, -23, 22, -6]), [5, 6]),
    "columns": gathering("Gather", np.array([5, 0, -1]), [23, 3], axis=1),
    # More positions than a literal may have.
    "large": gathering("Gather", RNG.integers(0, 23, (97, 97)), [97, 97, 6]),
    "points": gathering("GatherND", np.stack([RNG.integers(0, 23, 9), RNG.integers(0, 6, 9)], 1), [9]),
    "points-from-the-end": gathering("GatherND", np.array([[-1], [-23], [3]]), [3, 6]),
    "batched": gathering("GatherND", RNG.integers(0, 6, (23, 1)), [23], batch_dims=1),
    "elements": gathering("GatherElements", RNG.integers(-23, 23, (7, 6)), [7, 6], axis=0),
}


@pytest.mark.parametrize("case", CASES)
def test_values(case: str, tmp_path: Path) -> None:
    given = CASES[case]
    file = save(tmp_path, given)
    imported = load(file, ImportOptions())
    assert case != "large" or reader.MAX_INLINE_BYTES < 97 * 97 * 8
    assert "table" not in imported.parameters
    (taken,) = imported.parameters.values()
    feeds = random_feeds(given)
    (expected,) = run_onnxruntime(given, feeds)
    np.testing.assert_array_equal(feeds["x"] + taken.load(), expected)


def test_what_is_large_is_gathered_by_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smartmem_mlir.ingress.onnx_model.weight_gathers.MAX_FOLDED_ELEMENTS", 100)
    imported = load(save(tmp_path, CASES["rows"]), ImportOptions())
    assert "table" in imported.parameters


def test_a_table_that_something_else_reads_stays(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Gather", ["table", "positions"], ["taken"], name="take"),
        helper.make_node("Add", ["x", "taken"], ["s"], name="add"),
        helper.make_node("Gather", ["table", "wanted"], ["found"], name="embed"),
        helper.make_node("Concat", ["s", "found"], ["y"], name="join", axis=0),
    ]
    inputs = [value("x", [2, 6]), value("wanted", [3], onnx.TensorProto.INT64)]
    given = model(nodes, inputs, ["y"], {"table": TABLE, "positions": np.array([3, -2])})
    imported = load(save(tmp_path, given), ImportOptions())
    assert {p.spec.shape for p in imported.parameters.values()} == {(23, 6), (2, 6)}
