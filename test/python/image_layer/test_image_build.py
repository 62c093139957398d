"""The library itself: what it exports and needs, that it builds for arm64, that the loader can install and find it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from image_runner import LAYER, Runner

SOURCE = Path(__file__).parents[3] / "runtime" / "image_layer"
LIBRARY = "libVkLayer_smartmem_image_memory.so"
MANIFEST = "VkLayer_smartmem_image_memory.json"
# The C library, in the two forms it takes: nothing that a phone would not have.
USUAL = re.compile(r"^(libc|libm|libdl|libpthread|ld-linux[-\w]*)\.so(\.\d+)?$")


def needed(library: Path, readelf: str = "readelf") -> set[str]:
    """The libraries that a library names as its own needs."""
    text = subprocess.run([readelf, "-d", library], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))


def exported(library: Path) -> set[str]:
    """The symbols that a library defines for others."""
    text = subprocess.run(["readelf", "--dyn-syms", "-W", library], check=True, capture_output=True, text=True).stdout
    fields = [line.split() for line in text.splitlines() if re.match(r"\s*\d+:", line)]
    named = [field for field in fields if len(field) > 7 and field[3] != "SECTION"]
    return {field[7].split("@")[0] for field in named if field[6] != "UND"}


def test_library_keeps_to_itself(layer_directory: Path) -> None:
    library = layer_directory / LIBRARY
    assert {name for name in needed(library) if not USUAL.match(name)} == set()
    assert exported(library) == {"vkNegotiateLoaderLayerInterfaceVersion"}


def test_manifest_names_the_layer_that_is_in_the_code(layer_directory: Path) -> None:
    manifest = json.loads((layer_directory / MANIFEST).read_text())["layer"]
    header = (SOURCE / "src" / "Version.h").read_text()
    assert f'"{manifest["name"]}"' in header
    assert manifest["name"] == LAYER
    assert f"interfaceVersion = {manifest['implementation_version']};" in header
    assert manifest["library_path"] == f"./{LIBRARY}"


def test_installs_side_by_side(layer_directory: Path, tmp_path: Path) -> None:
    subprocess.run(["cmake", "--install", layer_directory, "--prefix", tmp_path], check=True)
    directory = tmp_path / "share" / "vulkan" / "explicit_layer.d"
    assert {path.name for path in directory.rglob("*.*")} == {LIBRARY, MANIFEST, "version.mlir", "mirror.mlir"}


@pytest.mark.parametrize("variable", ["VK_ADD_LAYER_PATH", "VK_LAYER_PATH"])
def test_the_loader_finds_it_by_either_variable(runner: Runner, layer_directory: Path, variable: str) -> None:
    other = {"VK_ADD_LAYER_PATH", "VK_LAYER_PATH"} - {variable}
    environment = {variable: str(layer_directory), **dict.fromkeys(other, "")}
    outcome = runner.run(["iree-run-module", "--list_devices=vulkan"], environment=environment, validation=False)
    assert outcome.code == 0, outcome.text
    assert "vulkan://" in outcome.text


@pytest.mark.slow
def test_cross_compiles_to_arm64(tools_on_path: None, tmp_path: Path) -> None:
    if shutil.which("aarch64-linux-gnu-g++") is None:
        missing = pytest.fail if os.environ.get("SMARTMEM_REQUIRE_VULKAN") else pytest.skip
        missing("the cross compiler is not installed (Debian: g++-aarch64-linux-gnu)")
    toolchain = SOURCE / "cmake" / "aarch64-linux-gnu.cmake"
    options = [f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", "-DCMAKE_BUILD_TYPE=Debug"]
    subprocess.run(["cmake", "-S", SOURCE, "-B", tmp_path, *options], check=True)
    subprocess.run(["cmake", "--build", tmp_path], check=True)
    library = tmp_path / LIBRARY
    header = subprocess.run(["readelf", "-h", library], check=True, capture_output=True, text=True).stdout
    assert "AArch64" in header
    assert {name for name in needed(library) if not USUAL.match(name)} == set()
    assert exported(library) == {"vkNegotiateLoaderLayerInterfaceVersion"}
