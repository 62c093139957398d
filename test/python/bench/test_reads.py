"""The microbenchmark of reads: every kernel adds up what NumPy adds up, and a kernel that does not is noticed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

DEVICE = Path(__file__).parents[3] / "benchmarks" / "device"
sys.path.insert(0, str(DEVICE))

from read_values import STRIDE, grid, sums  # noqa: E402


def call(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(DEVICE / "reads.py"), *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=600, env=environment)


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reads") / "pack"
    done = call("pack", "-o", str(folder), "--grid", "256x64", "--passes", "1", "6")
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def test_every_kernel_is_right_on_lavapipe(pack: Path, tmp_path: Path) -> None:
    done = call("run", str(pack), "-o", str(tmp_path / "reads.json"), "--repetitions", "1", "--cpu-time")
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    reads = json.loads((tmp_path / "reads.json").read_text())["reads"]
    found = {(row["memory"], row["pattern"], row["element"]) for row in reads}
    assert len(found) == len(reads) == 3 * 3 * 2
    texels = 256 * 64 * (6 - 1)
    assert {row["bytes"] for row in reads} == {
        texels * reads_each * texel for reads_each in (1, 9) for texel in (16, 8)
    }


def test_a_kernel_that_the_device_refuses_has_an_error(pack: Path, tmp_path: Path) -> None:
    limits = {"SMARTMEM_IMAGE_LIMITS": "maxTexelBufferElements=16383"}
    done = call("run", str(pack), "-o", str(tmp_path / "reads.json"), "--repetitions", "1", **limits)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    for row in json.loads((tmp_path / "reads.json").read_text())["reads"]:
        assert ("error" in row) == (not row["right"]) == (row["memory"] == "texel_buffer")


def test_a_wrong_sum_is_noticed(pack: Path, tmp_path: Path) -> None:
    kernels = json.loads((pack / "kernels.json").read_text())
    for kernel in kernels:
        kernel["pattern"] = "window"
    wrong = tmp_path / "pack"
    wrong.mkdir()
    (wrong / "kernels.json").write_text(json.dumps(kernels))
    for name in ("reads.vmfb", "layer"):
        (wrong / name).symlink_to(pack / name)
    done = call("run", str(wrong), "-o", str(tmp_path / "reads.json"), "--repetitions", "1")
    assert done.returncode == 1
    right = [json.loads(line)["right"] for line in done.stdout.splitlines()]
    assert right == [False, False, True] * 6


@pytest.mark.parametrize("pattern", ["rows", "columns", "window"])
def test_sums_are_what_invocations_read(pattern: str) -> None:
    width, height, passes = 256, 4, 7
    texels = grid(width, height, half=False).astype(np.float64)
    reach = (-1, 0, 1) if pattern == "window" else (0,)
    wanted = np.zeros_like(texels)
    for number in range(passes):
        for dy in reach:
            for dx in reach:
                for y in range(height):
                    at = (np.arange(width) + number * STRIDE + dx) % width
                    wanted[y] += texels[(y + dy) % height, at]
    np.testing.assert_array_equal(sums(grid(width, height, half=False), pattern, passes), wanted)


@pytest.mark.parametrize("text", ["100x64", "128x64", "256x60"])
def test_a_grid_that_kernels_cannot_walk_is_refused(text: str, tmp_path: Path) -> None:
    done = call("pack", "-o", str(tmp_path / "pack"), "--grid", text)
    assert done.returncode == 2
    assert "powers of two" in done.stderr
