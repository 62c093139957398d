"""Generated kernels over rows compute what NumPy computes, for every vector width, and are generated at all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "transforms"))

from compiled import VECTORS, CompiledPrograms, compile_for_cpu
from row_programs import LEFT_TO_IREE, PACKED_PROGRAMS, PROGRAMS, build

ALL = (*PROGRAMS, *PACKED_PROGRAMS)


@pytest.fixture(scope="module", params=VECTORS)
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CompiledPrograms:
    return compile_for_cpu([build(name) for name in ALL], tmp_path_factory, request.param)


@pytest.mark.parametrize("name", ALL)
def test_the_result_is_numpys(compiled: CompiledPrograms, name: str) -> None:
    compiled.check(build(name), 2e-5)


@pytest.mark.parametrize("name", ALL)
def test_rows_are_one_kernel(compiled: CompiledPrograms, name: str) -> None:
    body = compiled.function(name)
    assert body.count('"flow.dispatch"') == (0 if name in LEFT_TO_IREE else 1)
    assert ("linalg.generic" in body) == (name in LEFT_TO_IREE)
