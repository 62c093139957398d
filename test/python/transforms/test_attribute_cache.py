"""What is read of attributes is remembered while a pipeline runs, and keeps no context alive after it."""

from __future__ import annotations

import gc
import weakref

import pytest
from mlir import ir

from smartmem_mlir.ir import make_context
from smartmem_mlir.transforms import structured
from smartmem_mlir.transforms.registry import run_pipeline
from smartmem_mlir.transforms.structured import read_structured

NEGATED = """
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = arith.negf %a : f32
    linalg.yield %b : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
"""
PASS = "smartmem-recompute-elementwise"


def remembered() -> int:
    return structured._read_maps.cache_info().currsize  # type: ignore[attr-defined]


@pytest.mark.parametrize("pipeline", [f"builtin.module({PASS})", f"builtin.module({PASS},{PASS})"])
def test_a_pipeline_forgets(pipeline: str) -> None:
    with make_context():
        module = ir.Module.parse(NEGATED)
        generic = module.body.operations[0].operation.regions[0].blocks[0].operations[1].operation
        assert read_structured(generic) is not None
        assert remembered() > 0
        run_pipeline(module, pipeline)
    assert remembered() == 0


def test_no_context_stays_alive() -> None:
    with make_context() as context:
        module = ir.Module.parse(NEGATED)
        run_pipeline(module, f"builtin.module({PASS})")
    alive = weakref.ref(context)
    del context, module
    gc.collect()
    assert alive() is None
