// The view repeats rows: computing in its order would compute each row three times.
// RUN: smartmem-opt %s --smartmem-hoist-views | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @f
// CHECK: %[[N:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<6x4xf32>)
// CHECK: smartmem.view %[[N]] at
func.func @f(%x: tensor<6x4xf32>, %w: tensor<4x5xf32>) -> tensor<18x5xf32> {
  %e = tensor.empty() : tensor<6x4xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<6x4xf32>) outs(%e : tensor<6x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.tanh %a : f32
    linalg.yield %t : f32
  } -> tensor<6x4xf32>
  %v = smartmem.view %y at (d0, d1) -> (d0 mod 6, d1) : (tensor<6x4xf32>) -> tensor<18x4xf32>
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<18x5xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<18x5xf32>) -> tensor<18x5xf32>
  %0 = linalg.matmul ins(%v, %w : tensor<18x4xf32>, tensor<4x5xf32>) outs(%init : tensor<18x5xf32>) -> tensor<18x5xf32>
  return %0 : tensor<18x5xf32>
}
