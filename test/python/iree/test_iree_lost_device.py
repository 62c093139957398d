"""A device that its driver lost, as Mesa's does now and then because of how IREE wakes its queue."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import iree.runtime as rt
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from smartmem_mlir import api
from smartmem_mlir.errors import DeviceLostError
from smartmem_mlir.iree import open_devices, runtime

LOST = "Error creating vm context with modules: DATA_LOSS; while invoking native function hal.fence.await"
UNBACKED = "buffer.c:303: FAILED_PRECONDITION; transient buffer has no staged Vulkan backing; while invoking"


@pytest.fixture(autouse=True)
def devices_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices that tests lose here are nobody else's in this process."""
    monkeypatch.setattr(open_devices, "_devices", {})
    monkeypatch.setattr(open_devices, "_threads", {})


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    weight = np.random.default_rng(1).standard_normal((16, 8), np.float32)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, size]) for name, size in (("x", 16), ("y", 8)))
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    graph = helper.make_graph(nodes, "small", [x], [y], [numpy_helper.from_array(weight, "w")])
    file = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), file)
    return api.compile(file, folder / "module").path


@pytest.fixture
def compiled(module: Path) -> api.CompiledModel:
    return api.load(module)


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Contexts that are still to be lost with their device; the real one is made after that."""
    left = [0]
    real = rt.VmContext

    def context(*arguments: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise RuntimeError(UNBACKED if left[0] % 2 else LOST)
        return real(*arguments)

    monkeypatch.setattr(runtime.rt, "VmContext", context)
    return left


def inputs_of(compiled: api.CompiledModel) -> list[np.ndarray]:
    return [np.random.default_rng(2).standard_normal(info.spec.shape, np.float32) for info in compiled.report.inputs]


def test_loading_goes_on_with_a_new_device(compiled: api.CompiledModel, losing: list[int]) -> None:
    device = compiled.load_module("cpu")._device
    losing[0] = 2
    other = api.load(compiled.path)
    inputs = inputs_of(compiled)
    expected, actual = compiled.run(inputs), other.run(inputs)
    assert other.load_module("cpu")._device is not device
    for name, values in expected.items():
        np.testing.assert_array_equal(actual[name], values)


def test_a_device_that_is_always_lost_is_an_error(compiled: api.CompiledModel, losing: list[int]) -> None:
    losing[0] = 100
    with pytest.raises(DeviceLostError, match=r"the driver lost .*DATA_LOSS"):
        compiled.load_module("cpu")
    assert losing[0] == 100 - runtime._LOADS


def test_threads_of_a_lost_device_get_only_idle_time() -> None:
    lost = open_devices.open_device("local-task")
    theirs = open_devices._threads["local-task"]
    assert theirs
    open_devices.forget_device("local-task", lost)
    assert {os.sched_getscheduler(thread) for thread in theirs} == {os.SCHED_IDLE}
    assert open_devices.open_device("local-task") is not lost
    # What is no longer in use is not taken out of use again.
    open_devices.forget_device("local-task", lost)
    mine = {int(thread) for thread in os.listdir("/proc/self/task")} - theirs
    assert os.SCHED_IDLE not in {os.sched_getscheduler(thread) for thread in mine & open_devices._threads["local-task"]}


def test_a_call_is_made_again(compiled: api.CompiledModel) -> None:
    module = compiled.load_module("cpu")
    inputs = inputs_of(compiled)
    (expected,) = module(inputs)

    class Lost:
        calls = 0

        def invoke(self, *_: object) -> None:
            self.calls += 1
            raise RuntimeError("DATA_LOSS; while invoking")

    lost = Lost()
    module._context = lost
    (actual,) = module(inputs)
    assert lost.calls == 1
    np.testing.assert_array_equal(actual, expected)
