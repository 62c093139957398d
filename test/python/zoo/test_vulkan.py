"""Whole models on a Vulkan driver whose subgroups are small: kernels that only lockstep makes right are wrong there."""

from __future__ import annotations

from pathlib import Path

import pytest

from smartmem_mlir import api
from smartmem_mlir.zoo import materialize

FOLDER = Path(__file__).parents[2] / "cases" / "zoo"


# What each needs beside the right passes; see docs/cli.md, "Kernels that IREE makes wrongly".
@pytest.mark.vulkan
@pytest.mark.parametrize(("name", "barriers", "misaligned"), [("smt", True, False), ("fst", False, True)])
def test_small_models_match(tmp_path: Path, name: str, barriers: bool, misaligned: bool) -> None:
    model = tmp_path / f"{name}.onnx"
    materialize(FOLDER / f"{name}.onnx", model)
    compiled = api.compile(model, tmp_path / "module", target="vulkan")
    assert any(repair.barriers for repair in compiled.report.repairs) is barriers
    assert bool(compiled.report.misaligned) is misaligned
    assert compiled.verify(device="vulkan", seeds=(0,)).matches
