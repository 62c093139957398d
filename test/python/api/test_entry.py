"""Modules whose caller provides memory are right, whatever their results are, for calls at the same time too."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import iree.runtime
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import smartmem_mlir as sm
from smartmem_mlir.iree.storage import storage_flags
from smartmem_mlir.iree.vm_module import open_module
from smartmem_mlir.report.measure import measure_kernels

WEIGHT = np.random.default_rng(1).standard_normal((16, 16), np.float32)
X = np.random.default_rng(2).standard_normal((8, 16), np.float32)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of every kind: computed, the same again, a boolean, a transposed one, the input, a constant."""
    kinds = {
        "product": ("FLOAT", [8, 8]),
        "again": ("FLOAT", [8, 8]),
        "positive": ("BOOL", [8, 16]),
        "turned": ("FLOAT", [16, 8]),
        "given": ("FLOAT", [8, 16]),
        "weight": ("FLOAT", [16, 16]),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["active"]),
        helper.make_node("Transpose", ["active"], ["turned"], perm=[1, 0]),
        helper.make_node("MatMul", ["active", "turned"], ["product"]),
        helper.make_node("Identity", ["product"], ["again"]),
        helper.make_node("Greater", ["hidden", "zero"], ["positive"]),
        helper.make_node("Identity", ["x"], ["given"]),
        helper.make_node("Identity", ["w"], ["weight"]),
    ]
    graph = helper.make_graph(
        nodes,
        "results",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 16])],
        [
            helper.make_tensor_value_info(name, getattr(TensorProto, kind), shape)
            for name, (kind, shape) in kinds.items()
        ],
        [numpy_helper.from_array(WEIGHT, "w"), numpy_helper.from_array(np.float32(0), "zero")],
    )
    path = tmp_path_factory.mktemp("results") / "results.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def expected(x: np.ndarray) -> dict[str, np.ndarray]:
    hidden = x @ WEIGHT
    active = np.maximum(hidden, 0)
    product = active @ active.T
    return {
        "product": product,
        "again": product,
        "positive": hidden > 0,
        "turned": active.T,
        "given": x,
        "weight": WEIGHT,
    }


def check(outputs: dict[str, np.ndarray], x: np.ndarray) -> None:
    wanted = expected(x)
    assert list(outputs) == list(wanted)
    for name, values in wanted.items():
        np.testing.assert_allclose(outputs[name], values, rtol=1e-4, atol=1e-4, err_msg=name)


Opened = Callable[..., sm.CompiledModel]


@pytest.fixture(scope="module")
def opened(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """The model for a target, compiled once for all tests, loaded anew for each."""
    folder = tmp_path_factory.mktemp("compiled")

    @cache
    def compiled(target: str, entry: str, baseline: bool) -> Path:
        path = folder / f"{target}-{entry}-{baseline}"
        return sm.compile(model, path, target=target, entry=entry, baseline=baseline).path

    return lambda target, entry="in-place", baseline=False: sm.load(compiled(target, entry, baseline))


@pytest.mark.parametrize("baseline", [False, True])
@pytest.mark.parametrize("target", ["cpu", pytest.param("vulkan", marks=pytest.mark.vulkan)])
def test_results_of_every_kind(opened: Opened, target: str, baseline: bool) -> None:
    compiled = opened(target, baseline=baseline)
    assert (compiled.report.transient_bytes or 0) >= 8 * 16 * 4
    for scale in (1, -3):
        check(compiled.run([scale * X]), scale * X)


def test_a_module_without_intermediates(tmp_path: Path) -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [5]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "negation", [x], [y])
    path = tmp_path / "negation.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    compiled = sm.compile(path, tmp_path / "module", target="cpu", entry="in-place")
    assert compiled.report.transient_bytes == 0
    np.testing.assert_array_equal(compiled(np.arange(5, dtype=np.float32)), -np.arange(5, dtype=np.float32))


@pytest.mark.parametrize("target", ["cpu", pytest.param("vulkan", marks=pytest.mark.vulkan)])
def test_calls_at_the_same_time_have_memory_of_their_own(opened: Opened, target: str) -> None:
    compiled = opened(target)
    compiled.run([X])
    inputs = [np.float32(number) * X for number in range(1, 41)]
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda x: compiled.run([x]), inputs))
    for outputs, x in zip(results, inputs, strict=True):
        check(outputs, x)


def overwrite(outputs: dict[str, np.ndarray]) -> None:
    for values in outputs.values():
        values[...] = 0


@pytest.mark.parametrize("entry", ["plain", "in-place"])
def test_a_caller_may_write_to_results(opened: Opened, entry: str) -> None:
    """Two results that are the same, and one that is a weight, are memory of their own."""
    compiled = opened("cpu", entry)
    outputs = compiled.run([X])
    overwrite({"again": outputs["again"], "weight": outputs["weight"]})
    np.testing.assert_allclose(outputs["product"], expected(X)["product"], rtol=1e-4, atol=1e-4)
    check(compiled.run([X]), X)


@pytest.mark.parametrize("entry", ["plain", "in-place"])
def test_results_stay_while_the_caller_holds_a_part_of_them(opened: Opened, entry: str) -> None:
    compiled = opened("cpu", entry)
    rows = [compiled.run([np.float32(scale) * X])["turned"][3:5] for scale in range(1, 31)]
    for scale, held in enumerate(rows, start=1):
        np.testing.assert_allclose(held, expected(np.float32(scale) * X)["turned"][3:5], rtol=1e-4, atol=1e-4)
    del compiled
    np.testing.assert_allclose(rows[0], expected(X)["turned"][3:5], rtol=1e-4, atol=1e-4)


def test_results_on_the_host_are_where_the_module_wrote_them(opened: Opened) -> None:
    """Neither copied nor allocated again once they are given up."""
    compiled = opened("cpu")

    def addresses() -> set[int]:
        return {compiled.run([X])["product"].ctypes.data for _ in range(20)}

    assert len(addresses()) <= 2
    held = compiled.run([X])["product"]
    assert held.ctypes.data not in addresses()


def test_a_plain_module_needs_no_memory(opened: Opened) -> None:
    compiled = opened("cpu", "plain")
    assert compiled.report.entry == "plain"
    assert compiled.report.transient_bytes is None
    assert storage_flags([info.spec for info in compiled.report.outputs], compiled.report.transient_bytes) == []


def test_runs_in_irees_own_tool(opened: Opened, tmp_path: Path) -> None:
    compiled = opened("cpu")
    assert sum(time.calls for time in measure_kernels(compiled.path, compiled.report).values()) > 0
    np.save(tmp_path / "x.npy", X)
    command = [
        Path(sys.executable).with_name("iree-run-module"),
        f"--module={compiled.path / 'model.vmfb'}",
        f"--parameters=model={compiled.path / 'params.irpa'}",
        "--device=local-task",
        "--function=main",
        f"--input=@{tmp_path / 'x.npy'}",
        *storage_flags([info.spec for info in compiled.report.outputs], compiled.report.transient_bytes),
        f"--output=@{tmp_path / 'product.npy'}",
        *(f"--output=@{tmp_path / name}.npy" for name in ("again", "positive", "turned", "given", "weight")),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    np.testing.assert_allclose(np.load(tmp_path / "product.npy"), expected(X)["product"], rtol=1e-4, atol=1e-4)


def test_a_module_that_goes_while_an_exception_passes_leaves_it_alone(opened: Opened) -> None:
    compiled = opened("cpu")
    instance = iree.runtime.VmInstance()
    with pytest.raises(TypeError, match="not 'VmModule'"):
        int(open_module(instance, compiled.path / "model.vmfb"))  # the module has no other owner
