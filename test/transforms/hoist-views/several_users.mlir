// The normalised image has another user: hoisting would normalise twice, so the view stays where it is.
// RUN: smartmem-opt %s --smartmem-hoist-views | FileCheck %s

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#row = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @f
// CHECK: %[[N:.*]] = linalg.generic {{.*}} ins(%arg0, %{{.*}} : tensor<6x6x4xf32>, tensor<6x6xf32>)
// CHECK: %[[V:.*]] = smartmem.view %[[N]] at
// CHECK: linalg.matmul ins(%[[V]]
func.func @f(%x: tensor<6x6x4xf32>, %w: tensor<4x5xf32>) -> (tensor<36x5xf32>, tensor<6x6x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<6x6xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6x6xf32>) -> tensor<6x6xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<6x6x4xf32>) outs(%start : tensor<6x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<6x6xf32>
  %e2 = tensor.empty() : tensor<6x6x4xf32>
  %norm = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %sum : tensor<6x6x4xf32>, tensor<6x6xf32>) outs(%e2 : tensor<6x6x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<6x6x4xf32>
  %rows = smartmem.view %norm at (d0, d1) -> ((d0 floordiv 6 + 1) mod 6, d0 mod 6, d1)
      : (tensor<6x6x4xf32>) -> tensor<36x4xf32>
  %e3 = tensor.empty() : tensor<36x5xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e3 : tensor<36x5xf32>) -> tensor<36x5xf32>
  %0 = linalg.matmul ins(%rows, %w : tensor<36x4xf32>, tensor<4x5xf32>) outs(%init : tensor<36x5xf32>) -> tensor<36x5xf32>
  return %0, %norm : tensor<36x5xf32>, tensor<6x6x4xf32>
}
