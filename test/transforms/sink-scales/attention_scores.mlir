// Queries scaled by a constant: the product of the unscaled queries with the keys is scaled instead.
// RUN: smartmem-opt %s --smartmem-sink-scales | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#all = affine_map<(d0, d1) -> ()>
// CHECK-LABEL: func.func @f
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<4x8xf32>, tensor<8x6xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[P]], %arg2 : tensor<4x6xf32>, tensor<f32>)
// CHECK: arith.mulf
func.func @f(%q: tensor<4x8xf32>, %k: tensor<8x6xf32>, %s: tensor<f32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %scaled = linalg.generic {indexing_maps = [#id, #all, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q, %s : tensor<4x8xf32>, tensor<f32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<4x8xf32>
  %zero = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<4x6xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = linalg.matmul ins(%scaled, %k : tensor<4x8xf32>, tensor<8x6xf32>) outs(%start : tensor<4x6xf32>)
      -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
