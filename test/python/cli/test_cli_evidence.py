"""`compile --check`, `check` and `explain`: every movement of the model has a verdict, every rewrite a proof."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tiny_onnx import Builder

import smartmem_mlir as sm
from conftest import Smartmem
from smartmem_mlir.errors import InvalidModelError
from smartmem_mlir.index_maps.errors import UnprovedRewriteError
from smartmem_mlir.report.explanation import MOVEMENT_OPERATORS, without_locations
from smartmem_mlir.report.source_nodes import movement_nodes


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Windows of a rolled image times a weight, a copy that stays, a shape computation, and a node without a name."""
    b = Builder(np.random.default_rng(0))
    tail = b.op("Slice", "x", b.ints(3), b.ints(14), b.ints(0))
    head = b.op("Slice", "x", b.ints(0), b.ints(3), b.ints(0))
    rolled = b.op("Concat", tail, head, axis=0)
    split = b.op("Reshape", rolled, b.ints(2, 7, 2, 7, 8))
    turned = b.op("Transpose", split, perm=[0, 2, 1, 3, 4])
    rows = b.op("Reshape", turned, b.ints(196, 8))
    product = b.op("MatMul", b.op("Softmax", rows, axis=1), b.weight(8, 4))
    shape = b.op("Shape", product)
    first = b.op("Gather", shape, b.ints(0), axis=0)
    flat = b.op("Reshape", b.op("Relu", product), b.op("Concat", first, b.ints(2, 2), axis=0))
    b.op("Transpose", flat, perm=[2, 0, 1], name="y")
    b.nodes[-1].name = ""
    x, y = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("x", [14, 14, 8]), ("y", [2, 196, 2]))
    )
    return b.save(tmp_path_factory.mktemp("evidence") / "windows.onnx", [x], [y])


@pytest.fixture(scope="module")
def proved(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model compiled with --check; not to be changed."""
    folder = tmp_path_factory.mktemp("proved") / "out"
    sm.compile(model, folder, check=True)
    return folder


@pytest.fixture
def copied(proved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(proved, tmp_path / "out"))


def test_every_movement_of_the_model_has_a_verdict(smartmem: Smartmem, proved: Path, model: Path) -> None:
    content = json.loads(smartmem("explain", proved, "--json").out)
    expected = [(node.name, node.operator, node.location) for node in movement_nodes(model)]
    assert [(m["node"], m["operator"], m["location"]) for m in content["movements"]] == expected
    assert expected[0] == ("Slice_0", "Slice", "node 0 of the graph")
    verdicts = {m["node"]: m for m in content["movements"]}
    for name in ("Slice_0", "Slice_1", "Concat_2", "Reshape_3", "Transpose_4", "Reshape_5"):
        assert verdicts[name]["verdict"] == "eliminated"
        assert "Softmax_6" in verdicts[name]["into"]
    assert verdicts["Transpose_4"]["map"].startswith("(d0, d1) -> (")
    assert verdicts["Gather_9"]["verdict"] == "constant"
    assert verdicts["y"]["verdict"] == "kept"
    assert "result of the model" in verdicts["y"]["how"]
    assert verdicts["y"]["bytes"] == 2 * (2 * 196 * 2) * 4
    assert verdicts["Transpose_4"]["bytes"] == 2 * (14 * 14 * 8) * 4
    assert content["totals"] == {"eliminated": 6, "kept": 2, "constant": 2}
    assert content["operators"]["Slice"] == {"eliminated": 2, "kept": 0, "constant": 0}
    assert set(content["operators"]) <= MOVEMENT_OPERATORS
    assert content["kernels"] == sm.load(proved).report.flow.kernels


def test_explain_prints_totals_and_what_was_kept_first(smartmem: Smartmem, proved: Path) -> None:
    lines = smartmem("explain", proved).out.splitlines()
    assert [line.split() for line in lines if line.startswith("in all")] == [["in", "all", "10", "2", "6", "2"]]
    verdicts = [line.split()[0] for line in lines if line.startswith(("kept ", "eliminated "))]
    assert verdicts == ["kept"] * 2 + ["eliminated"] * 6
    assert lines[-1].startswith("2 operators with constant results")


def test_one_node_is_explained_in_full(smartmem: Smartmem, proved: Path) -> None:
    done = smartmem("explain", proved, "--node", "Gather_9")
    assert done.out.splitlines()[0] == "Gather Gather_9: constant"
    done = smartmem("explain", proved, "--node", "Transpose_4")
    assert "map: (d0, d1) -> (" in done.out
    assert "into: Softmax_6" in done.out
    done = smartmem("explain", proved, "--node", "Softmax_6")
    assert "Softmax_6 takes over Transpose Transpose_4\n" in done.out
    content = json.loads(smartmem("explain", proved, "--node", "Softmax_6", "--json").out)
    assert content["movements"] == []
    assert [step["what"].split()[-1] for step in content["steps"]][:2] == ["Slice_0", "Slice_1"]
    missing = smartmem("explain", proved, "--node", "Softmax_99")
    assert missing.code == 2
    assert "says nothing about a node 'Softmax_99'" in missing.err


def test_before_and_after_and_what_is_left(smartmem: Smartmem, proved: Path, model: Path, tmp_path: Path) -> None:
    sm.compile(model, tmp_path / "plain", baseline=True)
    done = smartmem("explain", proved, "--json", "--against", tmp_path / "plain", "--measure")
    content, report = json.loads(done.out), sm.load(proved).report
    plain = sm.load(tmp_path / "plain").report
    before, after = content["before"], content["after"]
    assert (before["transforms"], after["transforms"]) == (8, 2)
    assert before["kernels"] == plain.flow.kernels
    assert (after["kernels"], after["kernel_bytes"]) == (report.flow.kernels, report.flow.total_bytes)
    assert set(content["kernel_times"]) == {kernel.name for kernel in report.flow.entries}
    total = sum(time["ns"] for time in content["kernel_times"].values())
    assert after["measured_ms"] == pytest.approx(total / 1e6)
    assert {each["node"] for each in content["survivors"]} == {
        movement.node for movement in report.movements if movement.verdict == "kept"
    }
    assert all(each["remedy"] and each["reason"] for each in content["survivors"])
    shown = smartmem("explain", proved, "--top", 1).out
    assert "1 more are left: --top 2 lists them" in shown
    assert "to remove it: " in shown
    other = smartmem("explain", proved, "--against", tmp_path / "none")
    assert other.code == 2


def test_plain_iree_eliminates_nothing(smartmem: Smartmem, model: Path, tmp_path: Path) -> None:
    sm.compile(model, tmp_path / "out", baseline=True)
    content = json.loads(smartmem("explain", tmp_path / "out", "--json").out)
    assert content["totals"] == {"eliminated": 0, "kept": 8, "constant": 2}


def test_check_proves_a_directory_again(smartmem: Smartmem, proved: Path) -> None:
    done = smartmem("check", proved)
    assert done.code == 0
    assert "all of which hold" in done.out


def test_a_corrupted_certificate_is_named(smartmem: Smartmem, copied: Path) -> None:
    file = copied / "certificates.json"
    text = file.read_text()
    corrupted = text.replace('"permutation":[0,2,1,3,4]', '"permutation":[2,0,1,3,4]')
    assert corrupted != text
    file.write_text(corrupted)
    done = smartmem("check", copied)
    assert done.code == 2
    assert "certificates.json: Transpose_4: smartmem-raise-views rewrote" in done.err
    assert done.err.count("\n") == 1
    with pytest.raises(UnprovedRewriteError):
        sm.check(copied)


@pytest.mark.parametrize("content", [None, "", "{}", '{"format": "smartmem-certificates"}'])
def test_missing_and_damaged_certificates_are_refused(smartmem: Smartmem, copied: Path, content: str | None) -> None:
    if content is None:
        (copied / "certificates.json").unlink()
    else:
        (copied / "certificates.json").write_text(content)
    done = smartmem("check", copied)
    assert done.code == 2
    assert "certificates.json" in done.err
    with pytest.raises(InvalidModelError):
        sm.load(copied)


def test_a_wrong_rewrite_stops_the_compilation(
    smartmem: Smartmem, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The passes of the child process are broken by a module that Python loads when it starts."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if 'smartmem_mlir.iree.worker' in ' '.join(sys.orig_argv):\n"
        "    from smartmem_mlir.index_maps.view import View\n"
        "    from smartmem_mlir.transforms import compose_views\n"
        "    right = compose_views._compose\n"
        "    def wrong(*arguments):\n"
        "        found = right(*arguments)\n"
        "        if found is None or len(set(found.shape)) == len(found.shape) or not found.single_map: return found\n"
        "        exprs = found.single_map.exprs\n"
        "        return View.mapped(found.shape, found.operands[0], (exprs[0] * 0, *exprs[1:]))\n"
        "    compose_views._compose = wrong\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = smartmem("compile", model, "-o", tmp_path / "out", "--check")
    assert done.code == 2
    assert "smartmem-compose-views rewrote smartmem.view and the proof fails" in done.err
    assert "error: Reshape_3: " in done.err
    assert not (tmp_path / "out").exists()


def test_locations_are_not_printed(smartmem: Smartmem, model: Path) -> None:
    for stage in ("import", "passes", "iree"):
        text = smartmem("compile", model, "--emit", stage).out
        assert "func.func" in text
        assert "loc(" not in text
    line = '    %0 = "x.y"() {s = "loc(1)"} : () -> i1 loc(#loc3)\n'
    fused = '  ^bb0(%in: f32 loc(fused[#loc5, "a b"(#loc3), unknown])):\n'
    assert without_locations(fused) == "  ^bb0(%in: f32):\n"
    assert without_locations(line + '#loc3 = loc("a")\n') == '    %0 = "x.y"() {s = "loc(1)"} : () -> i1\n'


def test_layouts_are_chosen_as_asked_and_told_with_who_asked(smartmem: Smartmem, tmp_path: Path) -> None:
    convolutions = write_convolutions(tmp_path / "conv.onnx")
    told = {}
    for method in ("solver", "paper"):
        folder = tmp_path / method
        assert smartmem("compile", convolutions, "--layouts", method, "-o", folder, "--verify").code == 0
        (told[method],) = json.loads((folder / "report.json").read_text())["layouts"]
    solver, paper = told["solver"], told["paper"]
    assert (solver["method"], solver["status"], solver["gap"]) == ("solver", "optimal", 0)
    assert (paper["method"], paper["status"]) == ("paper", "rule")
    assert solver["bound_ns"] == solver["objective_ns"] <= solver["paper_ns"] == paper["objective_ns"]
    assert solver["permuted"] == len(solver["layouts"]) > 0
    assert any("first" in layout["asked_by"] for layout in solver["layouts"])
    shown = smartmem("inspect", tmp_path / "solver").out
    assert f"layouts: {solver['permuted']} of {solver['tensors']} tensors" in shown
    assert "proved the least" in shown
    assert "by the paper's rule" in smartmem("inspect", tmp_path / "paper").out
    assert json.loads(smartmem("inspect", tmp_path / "solver", "--json").out)["layouts"] == [solver]
    explained = smartmem("explain", tmp_path / "solver").out
    for layout in solver["layouts"]:
        assert f"{layout['tensor']}  (asked by {layout['asked_by']})" in explained


def test_a_pipeline_without_a_choice_of_layouts_is_refused(smartmem: Smartmem, model: Path, tmp_path: Path) -> None:
    done = smartmem("compile", model, "--layouts", "paper", "--pipeline", "cpu-eliminate", "-o", tmp_path / "out")
    assert done.code == 2
    assert "pipeline 'cpu-eliminate' has no pass 'smartmem-select-layouts'" in done.err


def write_convolutions(path: Path) -> Path:
    """Two convolutions and what stands between them, in ONNX."""
    weights = [
        numpy_helper.from_array(np.linspace(-1, 1, 32 * deep * 9, dtype=np.float32).reshape(32, deep, 3, 3), name)
        for name, deep in (("w1", 16), ("w2", 32))
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], "first"),
        helper.make_node("Relu", ["a"], ["b"], "active"),
        helper.make_node("Conv", ["b", "w2"], ["y"], "second"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 16, 14, 14))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 32, 10, 10))
    graph = helper.make_graph(nodes, "convolutions", [x], [y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path
