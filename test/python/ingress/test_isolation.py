"""A crash, a hang or an error of torch-mlir is one line of text, and costs only the model at fault."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest
from onnx_cases import model, single, specialized, value

from smartmem_mlir.errors import CompilerError, UnsupportedModelError
from smartmem_mlir.ingress import isolated_lowering
from smartmem_mlir.ingress.isolated_lowering import lower_all, lower_isolated


def relu() -> onnx.ModelProto:
    return specialized(single("Relu", {"x": value("x", [4])}))


def crashing() -> onnx.ModelProto:
    """What the importer never passes on: torch-mlir runs out of memory on a scalar Einsum, and aborts."""
    return single("Einsum", {"x": value("x", [])}, equation="->", opset=12)


def untyped() -> onnx.ModelProto:
    """A model whose values lack the types that torch-mlir needs."""
    nodes = [onnx.helper.make_node("Relu", ["x"], ["a"]), onnx.helper.make_node("Relu", ["a"], ["y"])]
    return model(nodes, [value("x", [4])], ["y"])


def test_a_crash_costs_only_its_model() -> None:
    proto = crashing()
    proto.graph.output[0].CopyFrom(value("y0", []))
    first, crashed, last = lower_all([relu(), proto, relu()], [])
    assert first.text is not None
    assert "func.func @main" in first.text
    assert last.text == first.text
    assert crashed.text is None
    assert "\n" not in crashed.error
    assert crashed.error.startswith("the importer crashed")


def test_an_error_is_its_first_line() -> None:
    [result] = lower_all([untyped()], [])
    assert result.text is None
    assert result.error
    assert "\n" not in result.error


def stand_in(script: str) -> Sequence[str]:
    return [sys.executable, "-c", script]


def test_a_hang_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated_lowering, "TIMEOUT_S", 0.5)
    monkeypatch.setattr(isolated_lowering, "WORKER", stand_in("import time; time.sleep(60)"))
    [result] = lower_all([relu()], [])
    assert result.error == "the importer takes longer than 0 s"


def test_a_killed_worker_is_one_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(isolated_lowering, "WORKER", stand_in("import os; os.abort()"))
    with pytest.raises(UnsupportedModelError, match=r"Relu x1 .*the importer crashed") as caught:
        lower_isolated(relu(), [], tmp_path / "model.onnx")
    assert "model.onnx" in str(caught.value)


def test_a_model_whose_nodes_are_fine_by_themselves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # Succeeds on single nodes only: their models have no parameters.
    script = (
        "import json, pathlib, sys; d = pathlib.Path(sys.argv[1]);"
        "fine = json.loads((d / 'parameters.json').read_text()) == [];"
        "[p.with_suffix('.mlir' if fine else '.error').write_text('no') for p in d.glob('*.onnx')]"
    )
    monkeypatch.setattr(isolated_lowering, "WORKER", stand_in(script))
    with pytest.raises(CompilerError, match="the importer failed: no"):
        lower_isolated(relu(), ["w"], tmp_path / "model.onnx")
