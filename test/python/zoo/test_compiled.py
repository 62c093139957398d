"""The small variant of every model, compiled and compared with ONNX Runtime.

On a Vulkan driver whose subgroups are small: kernels that only lockstep makes right are wrong there.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from smartmem_mlir import api
from smartmem_mlir.zoo import materialize
from smartmem_mlir.zoo.cards import CARDS

FOLDER = Path(__file__).parents[2] / "cases" / "zoo"
# Pythia-70M is small enough to be used whole, and the larger one has the same blocks.
MODELS = [name.replace("-", "_") for name in CARDS if name != "pythia-70m"]
TOLERANCE = 1e-5  # measured: at most 4e-6


@pytest.fixture
def model(name: str, tmp_path: Path) -> Path:
    """The model's file."""
    file = tmp_path / f"{name}.onnx"
    materialize(FOLDER / f"{name}.onnx", file)
    return file


def test_there_are_twenty() -> None:
    assert len(MODELS) == 20


@pytest.mark.parametrize("name", MODELS)
def test_on_the_cpu(model: Path, tmp_path: Path) -> None:
    compiled = api.compile(model, tmp_path / "module")
    assert compiled.report.fallbacks == ()
    assert compiled.verify(seeds=(0,), tolerance=TOLERANCE).matches


NARROWED = {"biformer"}  # see docs/cli.md, "Kernels that IREE makes wrongly"


def matches_on_vulkan(folder: Path) -> None:
    """In a process of its own: where lavapipe loses the device, two of IREE's threads go on until the process ends."""
    loaded = f"smartmem_mlir.load({str(folder)!r})"
    code = f"import smartmem_mlir; assert {loaded}.verify(device='vulkan', seeds=(0,), tolerance={TOLERANCE}).matches"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


@pytest.mark.vulkan
@pytest.mark.parametrize("name", MODELS)
def test_on_any_vulkan_device(model: Path, tmp_path: Path, name: str) -> None:
    compiled = api.compile(model, tmp_path / "module", target="vulkan")
    report = compiled.report
    assert report.opt_level == "O0"
    assert report.narrowed is (name in NARROWED)
    assert len(report.fallbacks) == (1 if name in NARROWED else 0)
    matches_on_vulkan(compiled.path)


@pytest.mark.vulkan
@pytest.mark.parametrize("name", ["smt", "fst"])
def test_what_iree_makes_wrongly_is_mended(model: Path, tmp_path: Path, name: str) -> None:
    """With kernels of IREE's where there would be shaders of ours."""
    compiled = api.compile(model, tmp_path / "module", target="vulkan", pipeline="gpu")
    if name == "smt":
        assert any(repair.barriers for repair in compiled.report.repairs)
    else:
        assert compiled.report.misaligned
    matches_on_vulkan(compiled.path)
