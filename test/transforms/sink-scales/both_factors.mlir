// Both factors are scaled, rows and columns: one scale after the other moves behind the product.
// RUN: smartmem-opt %s --smartmem-sink-scales | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @f
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<4x8xf32>, tensor<8x6xf32>)
// CHECK: %[[Q:.*]] = linalg.generic {{.*}} ins(%[[P]], %arg3 : tensor<4x6xf32>, tensor<6xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[Q]], %arg2 : tensor<4x6xf32>, tensor<4xf32>)
func.func @f(%q: tensor<4x8xf32>, %k: tensor<8x6xf32>, %r: tensor<4xf32>, %c: tensor<6xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %rows = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q, %r : tensor<4x8xf32>, tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<4x8xf32>
  %e1 = tensor.empty() : tensor<8x6xf32>
  %columns = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%k, %c : tensor<8x6xf32>, tensor<6xf32>) outs(%e1 : tensor<8x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<8x6xf32>
  %zero = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<4x6xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = linalg.matmul ins(%rows, %columns : tensor<4x8xf32>, tensor<8x6xf32>) outs(%start : tensor<4x6xf32>)
      -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
