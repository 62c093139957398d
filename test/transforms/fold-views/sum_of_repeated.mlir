// A sum of repeated elements keeps the view: without it, nothing would say how many there are.
// RUN: smartmem-opt %s --smartmem-fold-views | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK: %[[V:.*]] = smartmem.view %arg0 at (d0, d1) -> (d0)
// CHECK: linalg.generic {{.*}} ins(%[[V]] : tensor<4x3xf32>)
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %v = smartmem.view %x at (d0, d1) -> (d0) : (tensor<4xf32>) -> tensor<4x3xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%v : tensor<4x3xf32>) outs(%start : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
