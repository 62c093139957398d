"""Generated shaders compute what NumPy computes, on a driver of the CPU, and are generated at all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "transforms"))

from compiled import CompiledPrograms, vulkan_device
from kernel_programs import PROGRAMS, build

# Sums are divided among the more threads, the more lanes the device has, and unrolled where it has registers.
DEVICES = {"small": vulkan_device(16), "large": vulkan_device(16384), "unrolling": vulkan_device(16, registers=65536)}
LEFT_TO_IREE = {"matmul_5x1x33"}  # one term: a product element by element


@pytest.fixture(scope="module", params=DEVICES)
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CompiledPrograms:
    programs = [build(name) for name in PROGRAMS]
    folder = tmp_path_factory.mktemp(request.param)
    return CompiledPrograms(programs, folder, DEVICES[request.param], "paper", "vulkan", "vulkan", "vulkan")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_result_is_numpys(compiled: CompiledPrograms, name: str) -> None:
    compiled.check(build(name), 1e-5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_contractions_are_generated(compiled: CompiledPrograms, name: str) -> None:
    body = compiled.function(name)
    assert ("flow.dispatch" in body) == (name not in LEFT_TO_IREE)
    # Of what IREE computes, no product is left.
    assert ("arith.mulf" in body) == (name in LEFT_TO_IREE)
