"""Generated shaders over rows compute what NumPy computes, on a driver of the CPU, and are generated at all."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "transforms"))

import arithmetic as math_
from compiled import CompiledPrograms, vulkan_device
from program import Program
from row_programs import LEFT_TO_IREE, PROGRAMS, SHADER_PROGRAMS, build

NAMES = [*PROGRAMS, *SHADER_PROGRAMS]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> CompiledPrograms:
    programs = [build(name) for name in NAMES]
    folder = tmp_path_factory.mktemp("rows")
    return CompiledPrograms(programs, folder, vulkan_device(1024), "paper", "vulkan", "vulkan", "vulkan")


@pytest.mark.parametrize("name", NAMES)
def test_the_result_is_numpys(compiled: CompiledPrograms, name: str) -> None:
    compiled.check(build(name), 2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_one_kernel(compiled: CompiledPrograms, name: str) -> None:
    body = compiled.function(name)
    assert body.count('"flow.dispatch"') == (0 if name in LEFT_TO_IREE else 1)
    assert ("linalg.generic" in body) == (name in LEFT_TO_IREE)
    # A sum that was tried as a product with ones is a sum again where that made no kernel.
    assert "dense<1.000000e+00>" not in body


def test_equal_norms_share_a_kernel_and_keep_their_weights(tmp_path: Path) -> None:
    program = Program("two_norms")
    x = program.argument([24, 40])
    for _ in range(3):
        normal = math_.layer_norm(program, x, [1])
        scaled = math_.binary(program, normal, program.argument([40]), "mulf", [1])
        x = math_.binary(program, scaled, program.argument([40]), "addf", [1])
    program.results.append(x)
    compiled = CompiledPrograms([program], tmp_path, vulkan_device(1024), "paper", "vulkan", "vulkan", "vulkan")
    assert compiled.lowered.count('"hal.executable.source"') == 1
    np.testing.assert_allclose(compiled.run(program)[0], x.array, rtol=2e-5, atol=2e-5)
