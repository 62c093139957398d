// One factor splits the summed axis, the other rolls it: the first folds although the second cannot.
// RUN: smartmem-opt %s --smartmem-fold-views | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK: %[[W:.*]] = smartmem.view %arg1 at (d0, d1) -> ((d0 + 1) mod 6, d1)
// CHECK: %[[E:.*]] = smartmem.view %[[W]] at (d0, d1, d2) -> (d0 * 3 + d1, d2) : {{.*}} -> tensor<2x3x5xf32>
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[E]] : tensor<2x4x3xf32>, tensor<2x3x5xf32>)
func.func @f(%x: tensor<2x4x3xf32>, %w: tensor<6x5xf32>) -> tensor<4x5xf32> {
  %a = smartmem.view %x at (d0, d1) -> (d1 floordiv 3, d0, d1 mod 3) : (tensor<2x4x3xf32>) -> tensor<4x6xf32>
  %b = smartmem.view %w at (d0, d1) -> ((d0 + 1) mod 6, d1) : (tensor<6x5xf32>) -> tensor<6x5xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x5xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<4x5xf32>) -> tensor<4x5xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<4x6xf32>, tensor<6x5xf32>) outs(%start : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}
