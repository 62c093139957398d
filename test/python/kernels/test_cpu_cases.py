"""Networks that tools of this kind got wrong, compiled for the CPU and run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "transforms"))

from case_programs import CASES, build
from compiled import CompiledPrograms, cpu_vectors


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> CompiledPrograms:
    return CompiledPrograms([build(name) for name in CASES], tmp_path_factory.mktemp("cases"), cpu_vectors(8, 16))


@pytest.mark.parametrize("name", CASES)
def test_the_result_is_numpys(compiled: CompiledPrograms, name: str) -> None:
    compiled.check(build(name), 1e-5)
