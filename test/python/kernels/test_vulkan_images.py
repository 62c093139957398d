"""Shaders that hand each other tensors in images, arrays and texel buffers compute what NumPy computes, from these."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "transforms"))

import numpy as np
import pytest
from texel_programs import PROGRAMS, build

RUNNER = Path(__file__).with_name("run_images.py")

# Of Debian's chromium-common: subgroups of 4, and descriptor sets where lavapipe gets push descriptors.
SWIFTSHADER = Path("/usr/lib/chromium/vk_swiftshader_icd.json")
VARIANTS = ["images", "arrays", "texel_buffers", "fast_images", "fast_texel_buffers"]
"""Those of `texel_programs.VARIANTS` that differ in what they ask of a driver."""


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compiles the programs of a variant once for all drivers."""

    @cache
    def compile_variant(variant: str) -> Path:
        path = tmp_path_factory.mktemp(variant)
        call(["compile", str(path), variant])
        return path

    return compile_variant


def call(arguments: list[str], **variables: str) -> None:
    """A process of its own."""
    environment = {**os.environ, **variables}
    command = [sys.executable, str(RUNNER), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "error" not in done.stderr, done.stderr[-2000:]


@pytest.mark.parametrize("driver", ["lavapipe", "swiftshader"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_results_are_numpys(compiled: Callable[[str], Path], variant: str, driver: str) -> None:
    variables = {}
    if driver == "swiftshader":
        if not SWIFTSHADER.is_file():
            missing = pytest.fail if os.environ.get("SMARTMEM_REQUIRE_VULKAN") else pytest.skip
            missing("SwiftShader is missing; on Debian tools/install-system-packages installs it, with chromium")
        variables["VK_ICD_FILENAMES"] = str(SWIFTSHADER)
    folder = compiled(variant)
    call(["run", str(folder)], **variables)
    with np.load(folder / "results.npz") as results:
        for name in PROGRAMS:
            wanted = build(name).results[0].array
            np.testing.assert_allclose(results[name], wanted, rtol=1e-5, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("variant", VARIANTS)
def test_shaders_bind_what_was_told(compiled: Callable[[str], Path], variant: str) -> None:
    folder = compiled(variant)
    told = {each["memory"] for each in json.loads((folder / "memories.json").read_text())}
    binaries = re.findall(r'dense<"0x([0-9A-F]+)">', (folder / "lowered.mlir").read_text())
    lines = {line for binary in binaries for line in re.findall(rb"smartmem\.image\.v1[^\0]*", bytes.fromhex(binary))}
    found = {"image2d_array" if b" d=" in line else "image2d" if b" w=" in line else "texel_buffer" for line in lines}
    assert found == told - {"buffer"}
    assert found
