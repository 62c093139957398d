"""Shaders that hand tensors to each other in images, arrays and texel buffers compute what NumPy computes, from these."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "transforms"))

import numpy as np
import pytest
from texel_programs import PROGRAMS, VARIANTS, build

RUNNER = Path(__file__).with_name("run_images.py")

# Of Debian's chromium-common: subgroups of 4, and descriptor sets where lavapipe gets push descriptors.
SWIFTSHADER = Path("/usr/lib/chromium/vk_swiftshader_icd.json")
MEMORIES = {
    "images": {"image2d": 11, "buffer": 43},
    "arrays": {"image2d_array": 5, "texel_buffer": 6, "buffer": 43},
    "texel_buffers": {"texel_buffer": 11, "buffer": 43},
    "nothing_fits": {"buffer": 54},
    "unmeasured": {"buffer": 54},
    "fast_images": {"image2d": 15, "buffer": 39},
    "fast_texel_buffers": {"texel_buffer": 41, "buffer": 13},
    "fast_buffers": {"buffer": 54},
}
"""How many tensors of all programs are where, by variant."""
COMPARED = [("lavapipe", name) for name in VARIANTS] + [
    ("swiftshader", name) for name in ("images", "arrays", "texel_buffers", "fast_images", "fast_texel_buffers")
]
"""SwiftShader runs those that differ in what they ask of a driver."""


@pytest.fixture(scope="module", params=COMPARED, ids="-".join)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Results of all programs of a variant, computed by a process of its own, and the variant's name."""
    driver, variant = request.param
    path = tmp_path_factory.mktemp(f"{driver}-{variant}")
    environment = dict(os.environ)
    if driver == "swiftshader":
        if not SWIFTSHADER.is_file():
            missing = pytest.fail if os.environ.get("SMARTMEM_REQUIRE_VULKAN") else pytest.skip
            missing("SwiftShader is missing; on Debian tools/install-system-packages installs it, with chromium")
        environment["VK_ICD_FILENAMES"] = str(SWIFTSHADER)
    command = [sys.executable, str(RUNNER), str(path), variant]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "error" not in done.stderr, done.stderr[-2000:]
    return path, variant


def test_results_are_numpys(run: tuple[Path, str]) -> None:
    with np.load(run[0] / "results.npz") as results:
        for name in PROGRAMS:
            wanted = build(name).results[0].array
            np.testing.assert_allclose(results[name], wanted, rtol=1e-5, atol=2e-5, err_msg=name)


def test_tensors_are_where_they_should(run: tuple[Path, str]) -> None:
    path, variant = run
    told = json.loads((path / "memories.json").read_text())
    assert Counter(each["memory"] for each in told) == MEMORIES[variant]


def test_shaders_bind_what_was_told(run: tuple[Path, str]) -> None:
    path, _ = run
    told = {each["memory"] for each in json.loads((path / "memories.json").read_text())}
    binaries = re.findall(r'dense<"0x([0-9A-F]+)">', (path / "lowered.mlir").read_text())
    lines = {line for binary in binaries for line in re.findall(rb"smartmem\.image\.v1[^\0]*", bytes.fromhex(binary))}
    found = {"image2d_array" if b" d=" in line else "image2d" if b" w=" in line else "texel_buffer" for line in lines}
    assert found == told - {"buffer"}
