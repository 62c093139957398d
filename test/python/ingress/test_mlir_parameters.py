"""What `smartmem-externalize-constants` takes out of a module, compiling puts into the archive of weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from mlir import ir

import smartmem_mlir as sm
from smartmem_mlir.errors import InvalidModelError, SmartMemError, UnsupportedModelError
from smartmem_mlir.ingress import load
from smartmem_mlir.ir import make_context
from smartmem_mlir.transforms.registry import run_pipeline

WEIGHTS = np.random.default_rng(0).standard_normal((8, 32)).astype(np.float32)
MASK = np.random.default_rng(1).random((4, 32)) < 0.5


def dense(values: npt.NDArray[np.generic], type_: str) -> str:
    data = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else values
    return f'dense<"0x{data.tobytes().hex()}"> : {type_}'


MODULE = f"""
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x32xf32> {{
  %w = arith.constant {dense(WEIGHTS, "tensor<8x32xf32>")}
  %m = arith.constant {dense(MASK, "tensor<4x32xi1>")}
  %small = arith.constant dense<"0x{np.arange(32, dtype=np.float32).tobytes().hex()}"> : tensor<32xf32>
  %zero = arith.constant dense<0.0> : tensor<4x32xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x32xf32>)
                     outs(%zero : tensor<4x32xf32>) -> tensor<4x32xf32>
  %1 = linalg.broadcast ins(%small : tensor<32xf32>) outs(%zero : tensor<4x32xf32>) dimensions = [0]
  %2 = arith.addf %0, %1 : tensor<4x32xf32>
  %3 = arith.select %m, %2, %zero : tensor<4x32xi1>, tensor<4x32xf32>
  return %3 : tensor<4x32xf32>
}}
"""


def expected(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.where(MASK, x @ WEIGHTS + np.arange(32, dtype=np.float32), np.float32(0))


def externalized(folder: Path) -> Path:
    """The module after the pass, and its archive beside it. The bias is too small to be taken out."""
    path = folder / "net.mlir"
    options = f"min-elements=100 prefix=w archive={path.with_suffix('.npz')}"
    with make_context():
        module = ir.Module.parse(MODULE)
        run_pipeline(module, f"builtin.module(smartmem-externalize-constants{{{options}}})")
        path.write_text(str(module))
    return path


def test_values_come_from_the_archive(tmp_path: Path) -> None:
    imported = load(externalized(tmp_path))
    assert sorted(imported.parameters) == ["constant_0", "w.0", "w.1"]
    np.testing.assert_array_equal(imported.parameters["w.0"].load(), WEIGHTS)
    np.testing.assert_array_equal(imported.parameters["w.1"].load(), MASK)
    assert imported.module.count("smartmem.parameter") == 3


def test_compiled_with_its_weights(tmp_path: Path) -> None:
    compiled = sm.compile(externalized(tmp_path), tmp_path / "out")
    assert compiled.report.weights == 3
    x = np.random.default_rng(2).standard_normal((4, 8)).astype(np.float32)
    np.testing.assert_allclose(compiled.run([x])["output0"], expected(x), rtol=1e-5, atol=1e-5)
    assert compiled.verify(seeds=(0,)).matches


def test_a_new_key_avoids_those_that_are_taken(tmp_path: Path) -> None:
    path = externalized(tmp_path)
    path.write_text(path.read_text().replace('"w.1"', '"constant_0"').replace("@w.1", "@constant_0"))
    np.savez(path.with_suffix(".npz"), **{"w.0": WEIGHTS, "constant_0": MASK})
    parameters = load(path).parameters
    assert sorted(parameters) == ["constant_0", "constant_1", "w.0"]
    np.testing.assert_array_equal(parameters["constant_0"].load(), MASK)


@pytest.mark.parametrize(
    ("arrays", "kind", "why"),
    [
        (None, UnsupportedModelError, "no net.npz beside it"),
        (b"not an archive", InvalidModelError, "not an .npz archive"),
        ({"w.0": WEIGHTS}, UnsupportedModelError, "has no values of it"),
        ({"w.0": WEIGHTS, "w.1": MASK.T}, InvalidModelError, "32x4xbool, expected w.1: 4x32xi1"),
        ({"w.0": WEIGHTS.astype(np.float64), "w.1": MASK}, InvalidModelError, "expected w.0: 8x32xf32"),
        ({"w.0": np.array([{"a": 1}]), "w.1": MASK}, InvalidModelError, "cannot read the values"),
    ],
)
def test_bad_archives(tmp_path: Path, arrays: object, kind: type[SmartMemError], why: str) -> None:
    path = externalized(tmp_path)
    archive = path.with_suffix(".npz")
    archive.unlink()
    if isinstance(arrays, bytes):
        archive.write_bytes(arrays)
    elif isinstance(arrays, dict):
        np.savez(archive, **arrays)
    with pytest.raises(kind) as caught:
        [parameter.load() for parameter in load(path).parameters.values()]
    assert why in str(caught.value)
    assert "net." in str(caught.value)
