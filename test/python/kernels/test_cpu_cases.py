"""Networks that tools of this kind got wrong, compiled for the CPU and run."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "transforms"))

from case_programs import CASES, build
from compiled import CompiledPrograms, cpu_vectors


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> CompiledPrograms:
    return CompiledPrograms([build(name) for name in CASES], tmp_path_factory.mktemp("cases"), cpu_vectors(8, 16))


@pytest.mark.parametrize("name", CASES)
def test_the_result_is_numpys(compiled: CompiledPrograms, name: str) -> None:
    program = build(name)
    for found, expected in zip(compiled.run(program), program.results, strict=True):
        np.testing.assert_allclose(found, expected.array, rtol=1e-5, atol=2e-5)
