"""Generated CPU kernels compute what NumPy computes, for every vector width, and are generated at all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "transforms"))

from compiled import VECTORS, CompiledPrograms, compile_for_cpu
from kernel_programs import PROGRAMS, build

LEFT_TO_IREE = {
    "keys_transposed",  # neither factor has adjacent lanes, and for six rows none is laid out anew
    "gram",  # the same, and the factors are one tensor
    "matmul_31x3x1",  # one column
    "matmul_5x1x33",  # one term: a product element by element
    "depthwise_stride",  # every other pixel of an image that the caller stores channels first
}


@pytest.fixture(scope="module", params=VECTORS)
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CompiledPrograms:
    return compile_for_cpu([build(name) for name in PROGRAMS], tmp_path_factory, request.param)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_result_is_numpys(compiled: CompiledPrograms, name: str) -> None:
    compiled.check(build(name), 1e-5)


@pytest.mark.parametrize("channels", [20, 24])
def test_groups_are_not_padded(compiled: CompiledPrograms, channels: int) -> None:
    """The last vector of a group is as narrow as what is left."""
    assert f"@contraction_17x{2 * channels}x13" in compiled.function(f"channels_last_{channels}")


@pytest.mark.parametrize("name", ["conv_stride", "conv_in_blocks", "conv_of_part_lines", "conv_dilated"])
def test_kernels_pad_what_only_they_read(compiled: CompiledPrograms, name: str) -> None:
    assert "tensor.pad" not in compiled.function(name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_contractions_are_generated(compiled: CompiledPrograms, name: str) -> None:
    body = compiled.function(name)
    assert ("flow.dispatch" in body) == (name not in LEFT_TO_IREE)
    # Of the others, no product is left but that of a mean over columns.
    assert ("arith.mulf" in body) == (name in {*LEFT_TO_IREE, "scaled_rows"})
