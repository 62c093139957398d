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

import smartmem_mlir
from smartmem_mlir.errors import DeviceError
from smartmem_mlir.iree.image_layer import CANARIES, prove_layer
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
