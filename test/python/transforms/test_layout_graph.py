"""What the choice of layouts is told of a function: who is given, constant or inside a kernel, and under which name."""

from __future__ import annotations

from mlir.ir import Module

from smartmem_mlir.ir import make_context
from smartmem_mlir.layouts.graph import Loops, Move, Opaque
from smartmem_mlir.transforms.evidence import recording
from smartmem_mlir.transforms.ir_walk import block_operations
from smartmem_mlir.transforms.layout_graph import LayoutGraph
from smartmem_mlir.transforms.select_layouts import select_layouts

PRODUCT = """
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
module {
  func.func @f(%x: tensor<4x8xf32>) -> (tensor<4x6xf32>, tensor<2x3xf32>) {
    %zero = arith.constant 0.0 : f32
    %w = smartmem.parameter @w : tensor<6x8xf32>
    %turned = smartmem.view %w at (d0, d1) -> (d1, d0) : (tensor<6x8xf32>) -> tensor<8x6xf32>
    %e = tensor.empty() : tensor<4x6xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
    %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %turned : tensor<4x8xf32>, tensor<8x6xf32>) outs(%init : tensor<4x6xf32>) {
    ^bb0(%u: f32, %v: f32, %o: f32):
      %m = arith.mulf %u, %v : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    } -> tensor<4x6xf32> loc("Gemm_7")
    %cut = tensor.extract_slice %p[0, 0] [2, 3] [1, 1] : tensor<4x6xf32> to tensor<2x3xf32>
    return %p, %cut : tensor<4x6xf32>, tensor<2x3xf32>
  }
  func.func @g(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
}
"""


def test_operations_are_read_as_the_choice_needs_them() -> None:
    with make_context():
        module = Module.parse(PRODUCT)
        graph = LayoutGraph(block_operations(module.operation)[:8]).graph
    weight, turned, argument, product = (
        next(t for t in graph.tensors if t.shape == shape and t.constant is constant)
        for shape, constant in (((6, 8), True), ((8, 6), True), ((4, 8), False), ((4, 6), False))
    )
    assert weight.pinned
    assert argument.pinned
    assert not turned.pinned
    assert (product.name, product.element_bytes, product.pinned) == ("Gemm_7", 4, False)
    kinds = [type(op) for op in graph.operations]
    assert kinds == [Move, Loops, Opaque, Opaque]
    loops = graph.operations[1]
    assert isinstance(loops, Loops)
    assert (loops.contraction, loops.has_kernel, loops.attention, loops.starts) == (True, True, False, (None,))
    # What an operation that takes no other order computes keeps the order that it is written in.
    assert next(t for t in graph.tensors if t.shape == (2, 3)).pinned


def test_each_function_is_decided_for_itself_and_recorded() -> None:
    with make_context(), recording() as evidence:
        module = Module.parse(PRODUCT)
        decisions = select_layouts(module.operation, "solver")
        assert module.operation.verify()
    assert [decision.tensors for decision in decisions] == [5, 1]
    assert evidence.layouts == decisions
