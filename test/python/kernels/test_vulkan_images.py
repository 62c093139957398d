"""Shaders that hand tensors to each other in images compute what NumPy computes, and do use images."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "transforms"))

import numpy as np
import pytest
from texel_programs import IN_BUFFERS, PROGRAMS, build

RUNNER = Path(__file__).with_name("run_images.py")


# Of Debian's chromium-common: subgroups of 4, and descriptor sets where lavapipe gets push descriptors.
SWIFTSHADER = Path("/usr/lib/chromium/vk_swiftshader_icd.json")


@pytest.fixture(scope="module", params=["lavapipe", "swiftshader"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of all programs, computed by a process of its own."""
    path = tmp_path_factory.mktemp("images")
    environment = dict(os.environ)
    if request.param == "swiftshader":
        if not SWIFTSHADER.is_file():
            missing = pytest.fail if os.environ.get("SMARTMEM_REQUIRE_VULKAN") else pytest.skip
            missing("SwiftShader is missing; on Debian tools/install-system-packages installs it, with chromium")
        environment["VK_ICD_FILENAMES"] = str(SWIFTSHADER)
    command = [sys.executable, str(RUNNER), str(path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "error" not in done.stderr, done.stderr[-2000:]
    return path


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_result_is_numpys(folder: Path, name: str) -> None:
    with np.load(folder / "results.npz") as results:
        np.testing.assert_allclose(results[name], build(name).results[0].array, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_tensors_between_shaders_are_images(folder: Path, name: str) -> None:
    lowered = (folder / "lowered.mlir").read_text()
    body = re.search(rf"func\.func @{name}\(.*?\n  }}\n", lowered, re.DOTALL)
    assert body is not None
    shaders = re.findall(r"entry_points = \[@(\w+)::", body[0])
    binaries = {
        match[1]: bytes.fromhex(match[2])
        for match in re.finditer(r'path = "(\w+)\.spv", data = dense<"0x([0-9A-F]+)">', lowered)
    }
    images = sum(binaries[shader].count(b"smartmem.image.v1") for shader in shaders)
    # A tensor in an image has one kernel that writes it and at least one that reads it.
    assert (images >= 2) == (name not in IN_BUFFERS)
