"""The layer, built once, and the two CPU drivers to run it on."""

from __future__ import annotations

import ctypes.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from image_runner import Driver, Runner

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "runtime" / "image_layer"
BUILD = ROOT / "build" / "image_layer"
TOOLS = ("cmake", "g++", "spirv-as", "spirv-val")


def _require(present: bool, what: str) -> None:
    if present:
        return
    if os.environ.get("SMARTMEM_REQUIRE_VULKAN"):
        pytest.fail(f"{what} is missing; run tools/install-system-packages")
    pytest.skip(f"{what} is missing; tools/install-system-packages installs it")


@pytest.fixture(scope="session", autouse=True)
def tools_on_path() -> None:
    """Finds iree-compile and its like beside the interpreter, and checks what no package of PyPI brings."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for tool in TOOLS:
        _require(shutil.which(tool) is not None, tool)
    _require(ctypes.util.find_library("vulkan") is not None, "the Vulkan loader")


@pytest.fixture(scope="session")
def layer_directory(tools_on_path: None) -> Path:
    """Builds the layer; returns the directory of the library and its manifest."""
    if not (BUILD / "CMakeCache.txt").exists():
        subprocess.run(["cmake", "-S", SOURCE, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release"], check=True)
    subprocess.run(["cmake", "--build", BUILD, "--parallel", "2"], check=True)
    return BUILD


def _lavapipe() -> Path | None:
    directories = [Path("/usr/share/vulkan/icd.d"), Path("/etc/vulkan/icd.d")]
    found = [path for directory in directories for path in directory.glob("lvp_icd*.json")]
    return found[0] if found else None


def _swiftshader() -> Path | None:
    directory = Path(os.environ.get("SMARTMEM_SWIFTSHADER_DIR", ROOT / "build" / "swiftshader"))
    manifest = directory / "vk_swiftshader_icd.json"
    if not manifest.exists():
        subprocess.run([SOURCE / "tests" / "fetch-swiftshader", directory], check=False)
    return manifest if manifest.exists() else None


@pytest.fixture(scope="session", params=["lavapipe", "swiftshader"])
def driver(request: pytest.FixtureRequest, tools_on_path: None) -> Driver:
    """Lavapipe binds by push descriptors under IREE and truncates f16 stores; SwiftShader uses sets and rounds."""
    manifest = _lavapipe() if request.param == "lavapipe" else _swiftshader()
    _require(manifest is not None, f"the {request.param} driver")
    assert manifest is not None
    return Driver(request.param, manifest)


@pytest.fixture
def runner(driver: Driver, layer_directory: Path, tmp_path: Path) -> Runner:
    """Runs modules on the driver."""
    return Runner(driver, layer_directory, tmp_path)
