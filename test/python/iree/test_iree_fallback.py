"""What is tried when iree-compile fails, and what is left of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from smartmem_mlir.errors import CompilerError
from smartmem_mlir.iree.build import BuiltModule, build
from smartmem_mlir.iree.compiler import CompilerOptions, TimeLimitError
from smartmem_mlir.iree.device import resolve_device
from smartmem_mlir.iree.fallback import Attempt, Fallback, can_narrow
from smartmem_mlir.iree.lower import emit_iree
from smartmem_mlir.iree.runtime import LoadedModule
from smartmem_mlir.signature import TensorSpec
from smartmem_mlir.targets import load_target

# Positions of the elements that are 0, 1, 2 and 3: the end of what TopK is imported as. IREE has pairs of 32-bit
# integers for 64-bit ones where a device has none, but not for the table of constants that this kernel holds.
POSITIONS = """
func.func @main(%x: tensor<49x49xf32>) -> tensor<49x4xf32> {
  %numbers = arith.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
  %zero = arith.constant 0 : i64
  %e = tensor.empty() : tensor<49x4xi64>
  %f = linalg.fill ins(%zero : i64) outs(%e : tensor<49x4xi64>) -> tensor<49x4xi64>
  %at = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, c)>, affine_map<(a, b, c) -> (b)>,
      affine_map<(a, b, c) -> (a, b)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %numbers : tensor<49x49xf32>, tensor<4xi64>) outs(%f : tensor<49x4xi64>) {
  ^bb0(%in: f32, %number: i64, %out: i64):
    %rank = arith.fptosi %in : f32 to i64
    %found = arith.cmpi eq, %rank, %number : i64
    %i = linalg.index 2 : index
    %position = arith.index_cast %i : index to i64
    %term = arith.select %found, %position, %zero : i64
    %sum = arith.addi %term, %out : i64
    linalg.yield %sum : i64
  } -> tensor<49x4xi64>
  %o = tensor.empty() : tensor<49x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>],
      iterator_types = ["parallel", "parallel"]} ins(%at : tensor<49x4xi64>) outs(%o : tensor<49x4xf32>) {
  ^bb0(%in: i64, %out: f32):
    %number = arith.sitofp %in : i64 to f32
    linalg.yield %number : f32
  } -> tensor<49x4xf32>
  return %y : tensor<49x4xf32>
}
"""
TYPES = "func.func @main(%x: tensor<4xf32>) -> tensor<5xf32> {\n  return %x : tensor<4xf32>\n}\n"


def build_module(text: str, folder: Path, *, fall_back: bool, said: list[str], timeout_s: float = 600.0) -> BuiltModule:
    target = load_target("vulkan")
    source = folder / "model.mlir"
    source.write_text(text)
    options = CompilerOptions(timeout_s=timeout_s, reproducer=folder / "reproducer")
    (folder / "work").mkdir(exist_ok=True)
    return build(
        source, folder / "model.vmfb", folder / "work", target, "O2", options, said.append, fall_back=fall_back
    )


@pytest.mark.vulkan
def test_positions_are_computed_in_32_bits_where_64_do_not_compile(tmp_path: Path) -> None:
    text, said = emit_iree(POSITIONS, load_target("vulkan")), list[str]()
    with pytest.raises(CompilerError, match="i64"):
        build_module(text, tmp_path, fall_back=False, said=said)
    assert (tmp_path / "reproducer").exists()
    module = build_module(text, tmp_path, fall_back=True, said=said)
    assert module.attempt == Attempt("O2", narrowed=True)
    (fallback,) = module.fallbacks
    assert (fallback.opt_level, fallback.narrowed) == ("O2", False)
    assert "i64" in fallback.error
    assert "iree-compile failed at O2, trying O2, 64-bit integers as 32" in said
    assert not (tmp_path / "reproducer").exists(), "nothing failed in the end"
    inputs, outputs = [TensorSpec("x", (49, 49), "f32")], [TensorSpec("y", (49, 4), "f32")]
    x = np.random.default_rng(0).permuted(np.tile(np.arange(49, dtype=np.float32), (49, 1)), axis=1)
    (y,) = LoadedModule(module.vmfb, None, resolve_device("vulkan")[0], inputs, outputs)([x])
    np.testing.assert_array_equal(y, np.argsort(x, axis=1)[:, :4])


def test_the_error_is_that_of_the_first_attempt(tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(CompilerError, match=r"model\.mlir:2:3: .*; reproduce it with .*/reproducer/command\.sh"):
        build_module(TYPES, tmp_path, fall_back=True, said=said)
    assert [text for text in said if "trying" in text] == [
        "iree-compile failed at O2, trying O1",
        "iree-compile failed at O1, trying O0",
    ]
    assert "--iree-opt-level=O2" in (tmp_path / "reproducer" / "command.sh").read_text()


def test_what_takes_too_long_is_not_tried_again(tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(TimeLimitError):
        build_module(POSITIONS, tmp_path, fall_back=True, said=said, timeout_s=0.001)
    assert said == ["forming kernels"]


def test_the_order_of_attempts() -> None:
    vulkan, nvidia, cpu = (load_target(name) for name in ("vulkan", "nvidia", "cpu"))
    attempts = [Attempt("O1")]
    while (following := attempts[-1].following("failed to legalize i64", "", vulkan)) is not None:
        attempts.append(following)
    assert [str(attempt) for attempt in attempts] == [
        "O1",
        "O1, 64-bit integers as 32",
        "O0, 64-bit integers as 32",
    ]
    attempts = [Attempt("O1")]
    while (following := attempts[-1].following("why", "", nvidia)) is not None:
        attempts.append(following)
    assert [str(attempt) for attempt in attempts] == ["O1", "O1, no subgroup operations", "O0, no subgroup operations"]
    # These have 64-bit integers, and other errors are not about them.
    assert Attempt("O1").following("failed to legalize i64", "", nvidia) == Attempt("O1", subgroups=False)
    assert Attempt("O3").following("failed to legalize i64", "", cpu) == Attempt("O2")
    assert Attempt("O1").following("shared memory", "", vulkan) == Attempt("O0")
    assert Attempt("O0").following("shared memory", "", vulkan) is None
    assert Attempt("O2").failed("why") == Fallback(opt_level="O2", narrowed=False, subgroups=True, error="why")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%c = arith.constant dense<[0, -1, 48]> : tensor<3xi64>", True),
        ("%c = arith.constant 2147483647 : i64", True),
        ("%c = arith.constant 2147483648 : i64", False),
        ("%c = arith.constant dense<[0, -9223372036854775808]> : tensor<2xi64>", False),
        ("%c = arith.constant 4294967296 : index", True),
        ("func.func @main(%x: tensor<4xi64>) -> tensor<4xf32> {", False),
        ("func.func @main(%x: tensor<4xf32>) -> tensor<4xi64> {", False),
        ('"util.global"() {sym_name = "ids", type = tensor<4xi64>} : () -> ()', False),
        ('"util.global"() {sym_name = "weights", type = tensor<4xf32>} : () -> ()', True),
    ],
)
def test_what_can_be_narrowed(line: str, expected: bool) -> None:
    assert can_narrow(f"module {{\n  {line}\n}}") is expected
