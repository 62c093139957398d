"""Attention without a softmax computes what NumPy computes, for every vector width, and is one kernel."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "transforms"))

from compiled import VECTORS, CompiledPrograms, compile_for_cpu
from linear_attention_programs import KERNELS, OTHERS, PROGRAMS, WITH_OTHERS, build


@pytest.fixture(scope="module", params=VECTORS)
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CompiledPrograms:
    return compile_for_cpu([build(name) for name in PROGRAMS], tmp_path_factory, request.param)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_result_is_numpys(compiled: CompiledPrograms, name: str) -> None:
    compiled.check(build(name), 5e-5)


@pytest.mark.parametrize("name", KERNELS)
def test_it_is_one_kernel(compiled: CompiledPrograms, name: str) -> None:
    body = compiled.function(name)
    assert body.count('"flow.dispatch"') == body.count("@linear_attention_") // 2 == 1
    # The order that the caller wants may ask for a copy.
    assert re.search(r"(arith|math)\.(?!constant)", body) is None


@pytest.mark.parametrize("name", WITH_OTHERS)
def test_the_products_are_one_kernel(compiled: CompiledPrograms, name: str) -> None:
    body = compiled.function(name)
    assert body.count("@linear_attention_") == 2
    assert body.count('"flow.dispatch"') + body.count("linalg.generic") > 1


@pytest.mark.parametrize("name", OTHERS)
def test_other_products_are_not(compiled: CompiledPrograms, name: str) -> None:
    assert "linear_attention" not in compiled.function(name)
