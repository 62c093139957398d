"""The page of `smartmem explain --html` in a browser, against report.json."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from browser import run_in_browser
from onnx import TensorProto, helper, numpy_helper

import smartmem_mlir as sm
from smartmem_mlir.cli.app import main
from smartmem_mlir.report.graph.arrange import arrange
from smartmem_mlir.report.graph.model import Edge, Node
from smartmem_mlir.report.page import render_page
from smartmem_mlir.report.totals import before_and_after


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Windows of an image times a weight, a softmax, and a transposed result, which stays."""
    weight = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)
    ints = [("split", [2, 7, 2, 7, 8]), ("rows", [196, 8])]
    weights = [numpy_helper.from_array(weight, "w")]
    weights += [numpy_helper.from_array(np.array(values, np.int64), name) for name, values in ints]
    nodes = [
        helper.make_node("Reshape", ["x", "split"], ["a"], "to </script> windows"),
        helper.make_node("Transpose", ["a"], ["b"], "gather", perm=[0, 2, 1, 3, 4]),
        helper.make_node("Reshape", ["b", "rows"], ["c"], "flat"),
        helper.make_node("MatMul", ["c", "w"], ["d"], "product"),
        helper.make_node("Softmax", ["d"], ["e"], "scores", axis=1),
        helper.make_node("Transpose", ["e"], ["y"], "result", perm=[1, 0]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (14, 14, 8))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (4, 196))
    graph = helper.make_graph(nodes, "windows", [x], [y], weights)
    path = tmp_path_factory.mktemp("page") / "windows.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture(scope="module")
def compiled(model: Path) -> sm.CompiledModel:
    return sm.compile(model, model.parent / "out", target="cpu")


def explain(*arguments: object) -> int:
    sys.argv = ["smartmem", "explain", *map(str, arguments)]
    try:
        main()
    except SystemExit as exit_:
        return int(exit_.code or 0)
    return 0


@pytest.fixture(scope="module")
def page(compiled: sm.CompiledModel) -> str:
    path = compiled.path.parent / "page.html"
    assert explain(compiled.path, "--html", path, "--measure") == 0
    return path.read_text()


def test_nothing_comes_from_the_network(page: str) -> None:
    assert set(re.findall(r"https?://[^\s\"'<>]+", page)) == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in page
    assert len(re.findall(r"</script>", page)) == 2


def test_the_page_says_what_the_report_says(page: str, compiled: sm.CompiledModel) -> None:
    found = run_in_browser(
        page,
        """
        const numbers = Object.fromEntries([...document.querySelectorAll("#totals td[data-key]")].map(td => [td.dataset.key, td.dataset.value]));
        const boxes = () => [...document.querySelectorAll(".node")].map(box => box.getAttribute("aria-label"));
        const after = boxes(), lines = document.querySelectorAll(".edge").length;
        const times = [...document.querySelectorAll("#time .bar")].length;
        document.querySelector("[name=state][value=before]").click();
        const before = boxes();
        const storage = Object.fromEntries([...document.querySelectorAll("#storage .bar")].map(bar => [bar.dataset.kind, Number(bar.dataset.bytes)]));
        return {numbers, after, lines, times, before, storage, title: document.title, left: document.getElementById("survivors").textContent};
        """,  # noqa: E501
    )
    report = json.loads((compiled.path / "report.json").read_text())
    numbers = found["numbers"]
    moved = [movement for movement in report["movements"] if movement["verdict"] != "constant"]
    kept = [movement for movement in moved if movement["verdict"] == "kept"]
    assert int(numbers["before.transforms"]) == len(moved) == 4
    assert int(numbers["after.transforms"]) == len(kept)
    assert int(numbers["before.transform_bytes"]) == sum(movement["bytes"] for movement in moved)
    assert int(numbers["after.kernels"]) == report["flow"]["kernels"]
    assert int(numbers["after.kernel_bytes"]) == report["flow"]["total_bytes"]
    assert float(numbers["after.measured_ms"]) > 0
    assert found["title"] == "windows for cpu"
    kernels = [label for label in found["after"] if label.startswith("kernel ")]
    assert len(kernels) == report["flow"]["kernels"]
    assert found["times"] == len(kernels)
    assert found["after"][0] == "input x" or found["after"][0].startswith("input ")
    assert found["lines"] == len(kernels) + 1
    assert {"operator Transpose gather", "operator product", "operator scores"} <= set(found["before"])
    assert found["storage"]["weights"] == report["weight_bytes"]
    for movement in kept:
        assert movement["node"] in found["left"]


def test_clicks_keys_and_filters(page: str) -> None:
    found = run_in_browser(
        page,
        """
        const details = () => document.getElementById("details").textContent;
        const press = (target, key) => target.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
        const seen = {};
        document.querySelector("[name=state][value=before]").click();
        const boxes = [...document.querySelectorAll(".node")];
        const box = boxes.find(each => each.getAttribute("aria-label") === "operator Transpose gather");
        box.dispatchEvent(new MouseEvent("click", {bubbles: true}));
        seen.node = details();
        seen.selected = box.classList.contains("selected");
        press(box, "ArrowDown");
        seen.down = document.activeElement.getAttribute("aria-label");
        press(document.activeElement, "ArrowUp");
        seen.up = document.activeElement.getAttribute("aria-label");
        press(document.activeElement, "e");
        seen.tensor = details();
        press(box, "Home");
        seen.home = document.activeElement.getAttribute("aria-label");
        document.querySelector(".edge").dispatchEvent(new MouseEvent("click", {bubbles: true}));
        seen.edge = details();
        seen.cells = [...document.querySelectorAll(".places td")].slice(0, 5).map(td => td.textContent);
        const find = document.getElementById("find");
        find.value = "PROD";
        find.dispatchEvent(new Event("input"));
        seen.matches = document.body.dataset.matches;
        seen.dimmed = document.querySelectorAll(".node.dim").length;
        press(find, "Enter");
        seen.found = document.activeElement.getAttribute("aria-label");
        find.value = "";
        document.getElementById("only-moves").click();
        document.getElementById("only-moves").click();
        view.selectNode(view.graph.nodes.findIndex(node => node.name === "product"));
        seen.product = details();
        document.querySelector("#details .link").click();
        seen.state = document.body.dataset.state;
        seen.kernel = details();
        document.querySelector("[name=state][value=before]").click();
        document.getElementById("only-moves").click();
        seen.moves = document.body.dataset.matches;
        const width = document.querySelector("#canvas svg").getAttribute("width");
        document.getElementById("zoom-in").click();
        seen.zoomed = document.querySelector("#canvas svg").getAttribute("width") / width;
        return seen;
        """,
    )
    assert "verdicteliminated" in found["node"]
    assert "index map" in found["node"]
    assert found["selected"]
    assert found["down"] == "operator Reshape flat"
    assert found["up"] == "operator Transpose gather"
    assert "2x2x7x7x8xf32" in found["tensor"]
    assert found["home"] == "input x"
    assert "14x14x8xf32" in found["edge"]
    assert "(d0, d1, d2) -> (d0, d1, d2), buffer" in found["edge"]
    assert found["cells"] == ["0,0,0", "0,0,1", "0,0,2", "0,0,3", "0,1,0"]
    assert (found["matches"], found["dimmed"]) == ("1", 7)
    assert found["found"] == "operator product"
    assert found["moves"] == "4"
    assert "computed by the kernel" in found["product"]
    assert found["state"] == "after"
    assert re.search(r"computes.*product", found["kernel"])
    assert found["zoomed"] == pytest.approx(1.25)


def test_pictures_of_permuted_tensors(page: str) -> None:
    cells = run_in_browser(
        page,
        """
        const table = layoutPicture({shape: [1, 2, 3], order: [0, 2, 1], dtype: "f32"});
        return [[...table.querySelectorAll("td")].map(td => td.textContent), layoutText(3, [0, 2, 1], "buffer")];
        """,
    )
    # Logical 1x3x2, its second dimension innermost.
    assert cells[0] == ["0,0,0", "0,1,0", "0,2,0", "0,0,1", "0,1,1", "0,2,1"]
    assert cells[1] == "(d0, d1, d2) -> (d0, d2, d1), buffer"


def test_two_thousand_nodes_open_in_three_seconds(compiled: sm.CompiledModel) -> None:
    count = 2000
    nodes = [Node(name=f"n{k}", kind="operator" if k else "input", label=f"n{k}") for k in range(count)]
    edges = [
        Edge(source=source, target=target, shape=(1, 64, 56, 56), dtype="f32", bytes=802816)
        for target in range(1, count)
        for source in {target - 1, max(0, target - 7)}
    ]
    graph = arrange(nodes, edges)
    report = compiled.report
    page = render_page(report, before_and_after(report), {"after": graph, "before": graph})
    found = run_in_browser(
        page,
        """
        const start = performance.now();
        document.getElementById("find").value = "n19";
        document.getElementById("find").dispatchEvent(new Event("input"));
        return {ready: Number(document.body.dataset.ready), filter: performance.now() - start, boxes: document.querySelectorAll(".node").length, matches: document.body.dataset.matches};
        """,  # noqa: E501
    )
    assert (found["boxes"], found["matches"]) == (count, "111")
    assert found["ready"] < 3000
    assert found["filter"] < 1000


def test_without_the_model_there_is_no_state_before(
    compiled: sm.CompiledModel, model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    moved = Path(shutil.copy(model, tmp_path / "moved.onnx"))
    compiled_elsewhere = sm.compile(moved, tmp_path / "out", target="cpu", baseline=True)
    moved.rename(tmp_path / "again.onnx")
    assert explain(compiled_elsewhere.path, "--html", tmp_path / "a.html") == 0
    assert "no state before" in " ".join(capfd.readouterr().err.split())
    assert explain(compiled_elsewhere.path, "--html", tmp_path / "a.html", "--model", tmp_path / "again.onnx") == 0
    assert '"before"' in (tmp_path / "a.html").read_text().split('type="application/json">')[1].split("</script>")[0]
    assert explain(compiled_elsewhere.path, "--html", tmp_path / "b.html", "--model", tmp_path / "no.onnx") == 2
    assert not (tmp_path / "b.html").exists()
