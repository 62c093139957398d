// The sum is also returned: it stays as it is and is read through the view, while the division moves.
// RUN: smartmem-opt %s --smartmem-hoist-views | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<6x4xf32>) outs(%{{.*}} : tensor<6xf32>)
// CHECK-DAG: %[[X:.*]] = smartmem.view %arg0 at (d0, d1) -> ((d0 + 1) mod 6, d1)
// CHECK-DAG: %[[T:.*]] = smartmem.view %[[S]] at (d0) -> ((d0 + 1) mod 6)
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[T]] : tensor<6x4xf32>, tensor<6xf32>)
func.func @f(%x: tensor<6x4xf32>, %w: tensor<4x5xf32>) -> (tensor<6x5xf32>, tensor<6xf32>) {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<6xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6xf32>) -> tensor<6xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<6x4xf32>) outs(%start : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  %e2 = tensor.empty() : tensor<6x4xf32>
  %norm = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<6x4xf32>, tensor<6xf32>) outs(%e2 : tensor<6x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<6x4xf32>
  %rolled = smartmem.view %norm at (d0, d1) -> ((d0 + 1) mod 6, d1) : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %e3 = tensor.empty() : tensor<6x5xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e3 : tensor<6x5xf32>) -> tensor<6x5xf32>
  %0 = linalg.matmul ins(%rolled, %w : tensor<6x4xf32>, tensor<4x5xf32>) outs(%init : tensor<6x5xf32>) -> tensor<6x5xf32>
  return %0, %sum : tensor<6x5xf32>, tensor<6xf32>
}
