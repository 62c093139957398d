"""A model whose tensors live in images: compiled, run with the layer, and refused without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import yaml
from onnx import helper

import smartmem_mlir
from smartmem_mlir.errors import DeviceError
from smartmem_mlir.iree.image_layer import CANARIES, prove_layer
from smartmem_mlir.targets import load_target
from smartmem_mlir.zoo.demo import DemoConfig, build_demo


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    model = folder / "demo.onnx"
    onnx.save(build_demo(DemoConfig(image=56, dims=(48, 96), classes=12)), model)
    smartmem_mlir.compile(model, folder / "demo", target="vulkan", pipeline="vulkan", storage="image", opt_level="O2")
    return folder / "demo"


def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in a process that has not used Vulkan yet."""
    environment = {**os.environ, **variables}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, env=environment)


def test_the_report_says_that_there_are_images(compiled: Path) -> None:
    report = smartmem_mlir.load(compiled).report
    assert report.assumptions.kind == "vulkan"
    assert report.assumptions.images
    assert set(CANARIES.values()) <= set(report.files)


def test_it_matches_onnx_runtime_with_most_bytes_in_images(compiled: Path, tmp_path: Path) -> None:
    statistics = tmp_path / "statistics.json"
    code = (
        f"import smartmem_mlir; assert smartmem_mlir.load({str(compiled)!r}).verify(device='vulkan', seeds=[0]).matches"
    )
    done = run(code, SMARTMEM_IMAGE_STATS=str(statistics))
    assert done.returncode == 0, done.stderr
    found = json.loads(statistics.read_text().splitlines()[-1])
    assert found["errors"] == 0
    assert found["bytes_as_image"] > 2 * found["bytes_as_buffer"]


def test_vulkan_may_have_been_used_before(compiled: Path) -> None:
    code = (
        "import iree.runtime as rt, smartmem_mlir\n"
        "rt.get_device('vulkan')\n"
        f"assert smartmem_mlir.load({str(compiled)!r}).verify(device='vulkan', seeds=[0]).matches"
    )
    done = run(code)
    assert done.returncode == 0, done.stderr


def test_without_the_layer_it_is_refused_and_does_not_crash(compiled: Path) -> None:
    code = (
        "import smartmem_mlir, sys\n"
        "from smartmem_mlir.api import compiled_model\n"
        "compiled_model.enable = lambda: None\n"
        "try:\n"
        f"    smartmem_mlir.load({str(compiled)!r}).load_module('vulkan')\n"
        "except smartmem_mlir.errors.DeviceError as error:\n"
        "    sys.exit(f'refused: {error}')\n"
    )
    done = run(code)
    assert done.returncode == 1
    assert "refused: the module keeps tensors in images, and the device has no image layer" in done.stderr


@pytest.mark.parametrize(
    ("version", "mirrored", "message"),
    [(0, None, "no image layer"), (7, None, "version 7 of the image layer"), (1, 0.0, "does not read back")],
)
def test_wrong_answers_are_refused(version: int, mirrored: float | None, message: str) -> None:
    def mirror(values: object) -> list[np.ndarray]:
        return [np.zeros((4, 8, 4), np.float32)]

    with pytest.raises(DeviceError, match=message):
        prove_layer(lambda _: [np.array([version], np.int32)], lambda: mirror)


def test_a_right_answer_passes() -> None:
    prove_layer(
        lambda _: [np.array([1], np.int32)],
        lambda: lambda values: [np.asarray(values[0])[::-1, ::-1]],
    )


@pytest.fixture(scope="module")
def convolutions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1x1, 3x3, 1x1, each with a rectifier, which keeps them apart."""
    rng = np.random.default_rng(0)
    shapes = [(64, 32, 1, 1), (64, 64, 3, 3), (32, 64, 1, 1)]
    weights = [rng.standard_normal(shape).astype(np.float32) / 8 for shape in shapes]
    names = ["x", "narrow", "windows", "y"]
    nodes = []
    for number, shape in enumerate(shapes):
        pads = [shape[2] // 2] * 4
        nodes.append(
            helper.make_node("Conv", [names[number], f"w{number}"], [f"c{number}"], f"conv{number}", pads=pads)
        )
        nodes.append(helper.make_node("Relu", [f"c{number}"], [names[number + 1]], names[number + 1]))
    values = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (1, 32, 16, 16)) for name in (names[0], names[-1])
    ]
    initializers = [onnx.numpy_helper.from_array(weight, f"w{number}") for number, weight in enumerate(weights)]
    graph = helper.make_graph(nodes, "convolutions", values[:1], values[1:], initializers)
    path = tmp_path_factory.mktemp("convolutions") / "convolutions.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return path


@pytest.mark.parametrize(("dtype", "expected"), [("f16", {"w1"}), ("f32", set())])
def test_windows_of_half_are_in_images_where_these_are_fast(
    convolutions: Path, tmp_path: Path, dtype: str, expected: set[str]
) -> None:
    """The weight of a convolution of windows, not those of single pixels; f32 needs no conversion."""
    target = tmp_path / "target.yaml"
    description = load_target("nvidia").model_dump(mode="json", exclude_none=True)
    description["vulkan"]["memory_rates"]["window_image"] = 349
    # They are loaded from buffers.
    del description["vulkan"]["cooperative_matrices"]
    target.write_text(yaml.safe_dump(description))
    compiled = smartmem_mlir.compile(convolutions, tmp_path / "out", target=str(target), dtype=dtype)
    images = {each.tensor for each in compiled.report.memories if each.memory == "image2d"}
    assert images == expected
