// Exponentials divided by their row's sum, times the values: the division moves to the rows of the product.
// RUN: smartmem-opt %s --smartmem-sink-scales | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%arg0, %arg2 : tensor<4x6xf32>, tensor<6x8xf32>)
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[ROW]], #[[ID]]]{{.*}} ins(%[[P]], %arg1 : {{.*}}tensor<4xf32>)
// CHECK: arith.divf
func.func @f(%p: tensor<4x6xf32>, %sum: tensor<4xf32>, %v: tensor<6x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %weights = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %sum : tensor<4x6xf32>, tensor<4xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.divf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<4x6xf32>
  %zero = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<4x8xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x8xf32>) -> tensor<4x8xf32>
  %0 = linalg.matmul ins(%weights, %v : tensor<4x6xf32>, tensor<6x8xf32>) outs(%start : tensor<4x8xf32>)
      -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
