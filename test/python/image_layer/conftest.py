"""The layer, built once, and the two CPU drivers to run it on."""

from __future__ import annotations

import ctypes.util
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from image_runner import LAYER, VALIDATION, Driver, Refuses, Runner

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "runtime" / "image_layer"
BUILD = ROOT / "build" / "image_layer"
TOOLS = ("cmake", "g++", "spirv-as", "spirv-val")

if TYPE_CHECKING:
    from vulkan_app import App

HAS_VULKAN = ctypes.util.find_library("vulkan") is not None


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
    _require(HAS_VULKAN, "the Vulkan loader")


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Keeps other test processes out."""
    BUILD.parent.mkdir(exist_ok=True)
    with (BUILD.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def layer_directory(tools_on_path: None) -> Path:
    """Builds the layer; returns the directory of the library and its manifest."""
    with _alone("image_layer"):
        if not (BUILD / "CMakeCache.txt").exists():
            subprocess.run(["cmake", "-S", SOURCE, "-B", BUILD], check=True)
        subprocess.run(["cmake", "--build", BUILD], check=True)
    return BUILD


def _lavapipe() -> Path | None:
    directories = [Path("/usr/share/vulkan/icd.d"), Path("/etc/vulkan/icd.d")]
    found = [path for directory in directories for path in directory.glob("lvp_icd*.json")]
    return found[0] if found else None


def _swiftshader() -> Path | None:
    directory = Path(os.environ.get("SMARTMEM_SWIFTSHADER_DIR", ROOT / "build" / "swiftshader"))
    manifest = directory / "vk_swiftshader_icd.json"
    with _alone("swiftshader"):
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


@pytest.fixture
def loaded(driver: Driver, layer_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a process with the layer; the loader reads it when an instance is made."""
    monkeypatch.setenv("VK_ICD_FILENAMES", str(driver.manifest))
    monkeypatch.setenv("VK_DRIVER_FILES", str(driver.manifest))
    monkeypatch.setenv("VK_ADD_LAYER_PATH", str(layer_directory))
    monkeypatch.setenv("VK_INSTANCE_LAYERS", f"{LAYER}:{VALIDATION}")


@pytest.fixture
def app(loaded: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[App]:
    """An application whose use of Vulkan, with the layer's additions, the validation layer accepts."""
    from vulkan_app import App

    app = App(tmp_path)
    yield app
    app.close()
    text = "".join(capfd.readouterr())
    assert "Validation Error" not in text, text


@pytest.fixture
def refuses(capfd: pytest.CaptureFixture[str]) -> Refuses:
    """A block that must end in a failed Vulkan call, with a message of the layer that contains the text."""
    import vulkan as vk

    @contextmanager
    def block(text: str) -> Iterator[None]:
        capfd.readouterr()
        # The bindings have no exception for VK_ERROR_VALIDATION_FAILED_EXT and raise KeyError.
        with pytest.raises((vk.VkError, KeyError)):
            yield
        message = capfd.readouterr().err
        assert "smartmem image layer: error: " in message
        assert text in message, message

    return block
