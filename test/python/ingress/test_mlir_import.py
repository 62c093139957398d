"""MLIR files: entry, specs, large constants, bad input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from smartmem_mlir.errors import InvalidModelError, OptionError, SmartMemError, UnsupportedModelError
from smartmem_mlir.ingress import ImportOptions, load

VALUES = np.arange(32, dtype=np.float32)

MODULE = f"""
module {{
  func.func private @helper(tensor<32xf32>) -> tensor<32xf32>
  func.func @net(%x: tensor<32xf32>) -> tensor<32xf32> {{
    %w = arith.constant dense<[{", ".join(f"{v:.1f}" for v in VALUES)}]> : tensor<32xf32>
    %b = arith.constant dense<2.0> : tensor<32xf32>
    %r = arith.constant dense_resource<blob> : tensor<32xf32>
    %e = tensor.empty() : tensor<32xf32>
    %0 = linalg.add ins(%x, %w : tensor<32xf32>, tensor<32xf32>) outs(%e : tensor<32xf32>) -> tensor<32xf32>
    %1 = linalg.add ins(%0, %b : tensor<32xf32>, tensor<32xf32>) outs(%e : tensor<32xf32>) -> tensor<32xf32>
    %2 = linalg.add ins(%1, %r : tensor<32xf32>, tensor<32xf32>) outs(%e : tensor<32xf32>) -> tensor<32xf32>
    return %2 : tensor<32xf32>
  }}
}}
{{-# dialect_resources: {{ builtin: {{ blob: "0x04000000{(VALUES * 3).tobytes().hex()}" }} }} #-}}
"""


def write(directory: Path, text: str) -> Path:
    path = directory / "net.mlir"
    path.write_text(text)
    return path


def test_large_constants_become_parameters(tmp_path: Path) -> None:
    imported = load(write(tmp_path, MODULE))
    assert (imported.kind, imported.name) == ("mlir", "net")
    assert "func.func @main(%arg0: tensor<32xf32>)" in imported.module
    assert [str(s) for s in imported.inputs] == ["input0: 32xf32"]
    assert [str(s) for s in imported.outputs] == ["output0: 32xf32"]
    assert sorted(imported.parameters) == ["constant_0", "constant_1"]
    np.testing.assert_array_equal(imported.parameters["constant_0"].load(), VALUES)
    np.testing.assert_array_equal(imported.parameters["constant_1"].load(), VALUES * 3)
    assert "dense<2.000000e+00>" in imported.module, "a splat stays"
    assert imported.module.count("smartmem.parameter") == 2


TWO = "func.func @a(%x: tensor<2xf32>) { return } func.func @b(%x: tensor<2xf32>) { return }"


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("this is not MLIR", InvalidModelError, "not a valid module"),
        ("module {", InvalidModelError, "not a valid module"),
        ("func.func @f(%x: tensor<2xf32>) -> index { return %x : tensor<2xf32> }", InvalidModelError, "return"),
        ("", UnsupportedModelError, "found none"),
        (TWO, UnsupportedModelError, "found @a, @b"),
        ("func.func @f(%x: tensor<?x2xf32>) { return }", UnsupportedModelError, "not a tensor of static shape"),
        ("func.func @f(%x: index) { return }", UnsupportedModelError, "index is not a tensor"),
        ("func.func @f(%x: tensor<2xbf16>) { return }", UnsupportedModelError, "bf16 is not supported"),
        (
            'func.func @f() -> tensor<2xf32> { %w = smartmem.parameter @"w" : tensor<2xf32> '
            "return %w : tensor<2xf32> }",
            UnsupportedModelError,
            "values are not in the file, and there is no net.npz beside it",
        ),
    ],
)
def test_bad_module(tmp_path: Path, text: str, kind: type[SmartMemError], expected: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(kind) as caught:
        load(path)
    assert expected in str(caught.value)
    assert "net.mlir" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("options", [ImportOptions(dims={"n": 2}), ImportOptions(dtype="f16")])
def test_options_do_not_apply(tmp_path: Path, options: ImportOptions) -> None:
    with pytest.raises(OptionError, match="fixed shapes and types"):
        load(write(tmp_path, MODULE), options)
