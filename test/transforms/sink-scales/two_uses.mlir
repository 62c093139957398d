// Something else reads the scaled tensor: it has to be computed anyway.
// RUN: smartmem-opt %s --smartmem-sink-scales | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#scale = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK: arith.mulf
// CHECK: linalg.matmul
// CHECK-NOT: linalg.generic
func.func @f(%q: tensor<4x8xf32>, %s: tensor<4xf32>, %k: tensor<8x6xf32>) -> (tensor<4x6xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %scaled = linalg.generic {indexing_maps = [#id, #scale, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q, %s : tensor<4x8xf32>, tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<4x8xf32>
  %start = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<4x6xf32>
  %zeros = linalg.fill ins(%start : f32) outs(%e2 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = linalg.matmul ins(%scaled, %k : tensor<4x8xf32>, tensor<8x6xf32>) outs(%zeros : tensor<4x6xf32>)
      -> tensor<4x6xf32>
  return %0, %scaled : tensor<4x6xf32>, tensor<4x8xf32>
}
