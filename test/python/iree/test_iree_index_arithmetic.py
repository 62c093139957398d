"""Rolls along the last dimension, which MLIR's vectoriser takes for loads of neighbours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from smartmem_mlir import api
from smartmem_mlir.ir import make_context
from smartmem_mlir.iree.index_arithmetic import guard_divisions

# Several rolls share a compilation.
SHIFTS = [(5, 2), (7, 2), (8, 3), (9, 4), (12, 5), (16, 3), (33, 5), (64, 7)]


def rolls() -> str:
    """Of each row of x, by two slices and a concatenation, as importers spell them."""
    lines = []
    for i, (n, shift) in enumerate(SHIFTS):
        row, head, tail = f"tensor<3x{n}xf32>", f"tensor<3x{n - shift}xf32>", f"tensor<3x{shift}xf32>"
        lines += [
            f"%a{i} = tensor.extract_slice %x{i}[0, {shift}] [3, {n - shift}] [1, 1] : {row} to {head}",
            f"%b{i} = tensor.extract_slice %x{i}[0, 0] [3, {shift}] [1, 1] : {row} to {tail}",
            f"%y{i} = tensor.concat dim(1) %a{i}, %b{i} : ({head}, {tail}) -> {row}",
        ]
    types = ", ".join(f"tensor<3x{n}xf32>" for n, _ in SHIFTS)
    arguments = ", ".join(f"%x{i}: tensor<3x{n}xf32>" for i, (n, _) in enumerate(SHIFTS))
    names = ", ".join(f"%y{i}" for i in range(len(SHIFTS)))
    body = "\n  ".join(lines)
    return f"func.func @main({arguments}) -> ({types}) {{\n  {body}\n  return {names} : {types}\n}}\n"


@pytest.mark.parametrize(
    ("target", "device"), [("cpu", "local-sync"), pytest.param("vulkan", "vulkan", marks=pytest.mark.vulkan)]
)
def test_rolls_along_the_last_dimension(tmp_path: Path, target: str, device: str) -> None:
    model = tmp_path / "rolls.mlir"
    model.write_text(rolls())
    compiled = api.compile(model, tmp_path / "module", target=target)
    inputs = [np.arange(3 * n, dtype=np.float32).reshape(3, n) for n, _ in SHIFTS]
    results = compiled.run(inputs, device=device).values()
    for x, (_, shift), y in zip(inputs, SHIFTS, results, strict=True):
        np.testing.assert_array_equal(y, np.roll(x, -shift, axis=1))


def test_dimensions_of_one_element_are_dropped_by_iree_before_it_vectorises() -> None:
    from mlir.ir import Module

    text = GENERIC.replace("FIRST", "(s + 1) mod 4").replace("LAST", "s").replace("INDEX", "%j").replace("x8x", "x1x")
    with make_context():
        module = Module.parse(text)
        guard_divisions(module.operation)
        assert "arith.maxsi" in str(module)


GENERIC = """
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
      outs(%e : tensor<4x8xf32>) {
  ^bb0(%o: f32):
    %a = linalg.index 0 : index
    %b = linalg.index 1 : index
    %i = affine.apply affine_map<()[s] -> (FIRST)>()[%a]
    %j = affine.apply affine_map<()[s] -> (LAST)>()[%b]
    %k = arith.addi %j, %j : index
    %v = tensor.extract %x[%i, INDEX] : tensor<4x8xf32>
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
"""


@pytest.mark.parametrize(
    ("first", "last", "index", "guarded"),
    [
        ("s", "(s + 3) mod 8", "%j", True),
        ("s", "s - (s floordiv 2) * 2", "%k", True),
        ("s", "s + s ceildiv 8", "%j", True),
        # Divisions on other dimensions do no harm, and vectors are kept where nothing is divided.
        ("(s + 1) mod 4", "s", "%j", False),
        ("s", "-s + 7", "%j", False),
    ],
)
def test_only_divided_last_indices_are_guarded(first: str, last: str, index: str, guarded: bool) -> None:
    from mlir.ir import Module

    text = GENERIC.replace("FIRST", first).replace("LAST", last).replace("INDEX", index)
    with make_context():
        module = Module.parse(text)
        guard_divisions(module.operation)
        assert module.operation.verify()
        assert ("arith.maxsi" in str(module)) is guarded
