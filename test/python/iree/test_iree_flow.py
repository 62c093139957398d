"""Kernels, movement and bytes: small modules through iree-compile, with answers worked out by hand.

Each model is so small that plain IREE makes one dispatch of it: what is tested is our classification and our byte
count, on IR that IREE really makes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from smartmem_mlir.iree.compiler import CompilerOptions, run_iree_compile
from smartmem_mlir.iree.device_target import compile_flags
from smartmem_mlir.iree.flow import FlowSummary
from smartmem_mlir.iree.flow.read import read_flow
from smartmem_mlir.targets import load_target

F32 = 4


def flow_of(folder: Path, body: str) -> FlowSummary:
    source, output = folder / "model.mlir", folder / "flow.mlir"
    source.write_text(body)
    flags = [*compile_flags(load_target("cpu"), "O2"), "--compile-to=flow", "--mlir-print-op-generic"]
    run_iree_compile(source, output, flags, CompilerOptions(reproducer=folder / "reproducer"))
    return read_flow(output)


@dataclass(frozen=True)
class Case:
    """A function of one kernel, what kind it is, and what one call reads and writes."""

    name: str
    text: str
    kind: str
    read: int
    written: int


CASES = [
    Case(
        "transpose",
        """
func.func @main(%x: tensor<64x48xf32>) -> tensor<48x64xf32> {
  %e = tensor.empty() : tensor<48x64xf32>
  %r = linalg.transpose ins(%x : tensor<64x48xf32>) outs(%e : tensor<48x64xf32>) permutation = [1, 0]
  return %r : tensor<48x64xf32>
}""",
        "movement",
        64 * 48 * F32,
        64 * 48 * F32,
    ),
    Case(
        "transpose that scales",
        """
#in = affine_map<(i, j) -> (j, i)>
#out = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<64x48xf32>) -> tensor<48x64xf32> {
  %c = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<48x64xf32>
  %r = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x48xf32>) outs(%e : tensor<48x64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %c : f32
    linalg.yield %m : f32
  } -> tensor<48x64xf32>
  return %r : tensor<48x64xf32>
}""",
        "compute",
        64 * 48 * F32,
        64 * 48 * F32,
    ),
    Case(
        "roll by index arithmetic",
        """
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<14x96xf32>) -> tensor<14x96xf32> {
  %e = tensor.empty() : tensor<14x96xf32>
  %c3 = arith.constant 3 : index
  %c14 = arith.constant 14 : index
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]}
      outs(%e : tensor<14x96xf32>) {
  ^bb0(%b: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %s = arith.addi %i, %c3 : index
    %m = arith.remui %s, %c14 : index
    %v = tensor.extract %x[%m, %j] : tensor<14x96xf32>
    linalg.yield %v : f32
  } -> tensor<14x96xf32>
  return %r : tensor<14x96xf32>
}""",
        "movement",
        14 * 96 * F32,
        14 * 96 * F32,
    ),
    Case(
        "zero padding by a position-dependent select",
        """
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<100xf32>) -> tensor<128xf32> {
  %e = tensor.empty() : tensor<128xf32>
  %c99 = arith.constant 99 : index
  %c100 = arith.constant 100 : index
  %zero = arith.constant 0.0 : f32
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<128xf32>) {
  ^bb0(%b: f32):
    %i = linalg.index 0 : index
    %inside = arith.cmpi ult, %i, %c100 : index
    %at = arith.minui %i, %c99 : index
    %v = tensor.extract %x[%at] : tensor<100xf32>
    %s = arith.select %inside, %v, %zero : f32
    linalg.yield %s : f32
  } -> tensor<128xf32>
  return %r : tensor<128xf32>
}""",
        "movement",
        100 * F32,
        128 * F32,
    ),
    Case(
        "relu, a select on the value",
        """
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<128xf32>) -> tensor<128xf32> {
  %e = tensor.empty() : tensor<128xf32>
  %zero = arith.constant 0.0 : f32
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<128xf32>) outs(%e : tensor<128xf32>) {
  ^bb0(%a: f32, %b: f32):
    %p = arith.cmpf ugt, %a, %zero : f32
    %s = arith.select %p, %a, %zero : f32
    linalg.yield %s : f32
  } -> tensor<128xf32>
  return %r : tensor<128xf32>
}""",
        "compute",
        128 * F32,
        128 * F32,
    ),
    Case(
        "gather of 5 rows of 1000",
        """
#rows = affine_map<(i, j) -> (i)>
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%table: tensor<1000x16xf32>, %at: tensor<5xi64>) -> tensor<5x16xf32> {
  %e = tensor.empty() : tensor<5x16xf32>
  %r = linalg.generic {indexing_maps = [#rows, #id], iterator_types = ["parallel", "parallel"]}
      ins(%at : tensor<5xi64>) outs(%e : tensor<5x16xf32>) {
  ^bb0(%i: i64, %b: f32):
    %row = arith.index_cast %i : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %table[%row, %j] : tensor<1000x16xf32>
    linalg.yield %v : f32
  } -> tensor<5x16xf32>
  return %r : tensor<5x16xf32>
}""",
        "movement",
        5 * 16 * F32 + 5 * 8,
        5 * 16 * F32,
    ),
    Case(
        "conversion to f16",
        """
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<128xf32>) -> tensor<128xf16> {
  %e = tensor.empty() : tensor<128xf16>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<128xf32>) outs(%e : tensor<128xf16>) {
  ^bb0(%a: f32, %b: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  } -> tensor<128xf16>
  return %r : tensor<128xf16>
}""",
        "compute",
        128 * 4,
        128 * 2,
    ),
    Case(
        "matmul",
        """
func.func @main(%a: tensor<49x64xf32>, %b: tensor<64x32xf32>) -> tensor<49x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<49x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<49x32xf32>) -> tensor<49x32xf32>
  %r = linalg.matmul ins(%a, %b : tensor<49x64xf32>, tensor<64x32xf32>)
      outs(%f : tensor<49x32xf32>) -> tensor<49x32xf32>
  return %r : tensor<49x32xf32>
}""",
        "compute",
        (49 * 64 + 64 * 32) * F32,
        49 * 32 * F32,
    ),
    Case(
        "every second column",
        """
#in = affine_map<(i, j) -> (i, j * 2)>
#out = affine_map<(i, j) -> (j, i)>
func.func @main(%x: tensor<8x32xf32>) -> tensor<16x8xf32> {
  %e = tensor.empty() : tensor<16x8xf32>
  %r = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x32xf32>) outs(%e : tensor<16x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<16x8xf32>
  return %r : tensor<16x8xf32>
}""",
        "movement",
        8 * 16 * F32,
        8 * 16 * F32,
    ),
    Case(
        "the positions themselves",
        """
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<4xf32>) -> (tensor<128xi64>) {
  %e = tensor.empty() : tensor<128xi64>
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<128xi64>) {
  ^bb0(%b: i64):
    %i = linalg.index 0 : index
    %c = arith.index_cast %i : index to i64
    linalg.yield %c : i64
  } -> tensor<128xi64>
  return %r : tensor<128xi64>
}""",
        "compute",
        0,
        128 * 8,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_one_kernel(tmp_path: Path, case: Case) -> None:
    flow = flow_of(tmp_path, case.text)
    assert flow.kernels == 1
    (kernel,) = flow.entries
    assert (kernel.kind, kernel.read_bytes, kernel.written_bytes) == (case.kind, case.read, case.written)
    assert flow.movement_kernels == (case.kind == "movement")
    assert flow.total_bytes == case.read + case.written
    assert flow.movement_bytes == (flow.total_bytes if case.kind == "movement" else 0)
    assert flow.largest_binding_bytes >= case.written


def test_a_kernel_that_is_called_twice_counts_twice(tmp_path: Path) -> None:
    flow = flow_of(
        tmp_path,
        """
func.func @main(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> (tensor<16x8xf32>, tensor<16x8xf32>) {
  %e = tensor.empty() : tensor<16x8xf32>
  %a = linalg.transpose ins(%x : tensor<8x16xf32>) outs(%e : tensor<16x8xf32>) permutation = [1, 0]
  %b = linalg.transpose ins(%y : tensor<8x16xf32>) outs(%e : tensor<16x8xf32>) permutation = [1, 0]
  return %a, %b : tensor<16x8xf32>, tensor<16x8xf32>
}""",
    )
    (kernel,) = flow.entries
    assert kernel.calls == 2
    assert (flow.kernels, flow.movement_kernels) == (2, 2)
    assert flow.movement_bytes == flow.total_bytes == 2 * 2 * 8 * 16 * F32


def test_slices_and_updates_outside_kernels_are_copies(tmp_path: Path) -> None:
    flow = flow_of(
        tmp_path,
        """
func.func @main(%x: tensor<16x96xf32>) -> tensor<16x96xf32> {
  %a = tensor.extract_slice %x[3, 0] [13, 96] [1, 1] : tensor<16x96xf32> to tensor<13x96xf32>
  %b = tensor.extract_slice %x[0, 0] [3, 96] [1, 1] : tensor<16x96xf32> to tensor<3x96xf32>
  %r = tensor.concat dim(0) %a, %b : (tensor<13x96xf32>, tensor<3x96xf32>) -> tensor<16x96xf32>
  return %r : tensor<16x96xf32>
}""",
    )
    updates = {copy.operation: copy for copy in flow.copies}["flow.tensor.update"]
    assert updates.count == 2
    assert updates.bytes == 2 * 16 * 96 * F32
    assert flow.copy_bytes == sum(copy.bytes for copy in flow.copies)
    assert flow.movement_bytes == sum(
        kernel.calls * kernel.bytes_per_call for kernel in flow.entries if kernel.moves_data
    )


def test_what_runs_once_at_load_is_apart(tmp_path: Path) -> None:
    flow = flow_of(
        tmp_path,
        """
"util.global"() {sym_name = "w", sym_visibility = "private", type = tensor<64x48xf32>,
  initial_value = #flow.parameter.named<"model"::"w"> : tensor<64x48xf32>} : () -> ()
func.func @main(%x: tensor<4x48x64xf32>) -> tensor<4x48x64xf32> {
  %w = "util.global.load"() {global = @w, is_immutable} : () -> tensor<64x48xf32>
  %e = tensor.empty() : tensor<48x64xf32>
  %t = linalg.transpose ins(%w : tensor<64x48xf32>) outs(%e : tensor<48x64xf32>) permutation = [1, 0]
  %s = math.sin %t : tensor<48x64xf32>
  %e2 = tensor.empty() : tensor<4x48x64xf32>
  %b = linalg.broadcast ins(%s : tensor<48x64xf32>) outs(%e2 : tensor<4x48x64xf32>) dimensions = [0]
  %r = arith.addf %x, %b : tensor<4x48x64xf32>
  return %r : tensor<4x48x64xf32>
}""",
    )
    assert flow.kernels == 1
    assert flow.entries[0].kind == "compute"
    assert sum(kernel.calls for kernel in flow.load_entries) == 1


def test_the_summary_survives_json() -> None:
    flow = FlowSummary.model_validate(
        {
            "entries": [
                {"name": "a", "kind": "movement", "calls": 3, "read_bytes": 8, "written_bytes": 4},
                {"name": "b", "kind": "compute", "calls": 1, "read_bytes": 5, "written_bytes": None},
                {"name": "c", "kind": "fill", "calls": 1, "read_bytes": 0, "written_bytes": 7},
            ],
            "copies": [{"operation": "flow.tensor.slice", "count": 2, "bytes": 64}],
            "load_entries": [],
            "load_copies": [],
            "largest_binding_bytes": 8,
        }
    )
    sums = (flow.kernels, flow.movement_kernels, flow.movement_bytes, flow.total_bytes, flow.copy_bytes)
    assert sums == (5, 4, 43, 48, 64)
    assert flow.unknown_kernels == 1
    assert FlowSummary.model_validate_json(flow.model_dump_json()) == flow
