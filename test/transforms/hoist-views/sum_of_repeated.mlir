// Each row's sum is over one element that a view repeats three times: without the view, nothing would say how often.
// RUN: smartmem-opt %s --smartmem-hoist-views | FileCheck %s

#in = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK: %[[V:.*]] = smartmem.view %arg0 at (d0, d1) -> (d0)
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[V]] : tensor<24x3xf32>)
// CHECK: smartmem.view %[[S]] at (d0, d1) -> (d1 + ((d0 + 1) mod 6) * 4)
func.func @f(%x: tensor<24xf32>, %w: tensor<4x5xf32>) -> tensor<6x5xf32> {
  %v = smartmem.view %x at (d0, d1) -> (d0) : (tensor<24xf32>) -> tensor<24x3xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<24xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<24xf32>) -> tensor<24xf32>
  %sum = linalg.generic {indexing_maps = [#in, #row], iterator_types = ["parallel", "reduction"]}
      ins(%v : tensor<24x3xf32>) outs(%start : tensor<24xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<24xf32>
  %rolled = smartmem.view %sum at (d0, d1) -> (((d0 + 1) mod 6) * 4 + d1) : (tensor<24xf32>) -> tensor<6x4xf32>
  %e1 = tensor.empty() : tensor<6x5xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6x5xf32>) -> tensor<6x5xf32>
  %0 = linalg.matmul ins(%rolled, %w : tensor<6x4xf32>, tensor<4x5xf32>) outs(%init : tensor<6x5xf32>) -> tensor<6x5xf32>
  return %0 : tensor<6x5xf32>
}
