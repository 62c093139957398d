// Queries and keys are thirds of one projection, by heads: the product reads both out of it, expanded and sliced.
// RUN: smartmem-opt %s --smartmem-fold-views | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-DAG: %[[Q:.*]] = smartmem.view %arg0 at (d0, d1, d2) -> (d0, d1 * 8 + d2) : {{.*}} -> tensor<5x3x8xf32>
// CHECK-DAG: %[[K:.*]] = smartmem.view %arg0 at (d0, d1, d2) -> (d0, d1 * 8 + d2 + 24) : {{.*}} -> tensor<5x3x8xf32>
// CHECK: linalg.generic {{.*}} ins(%[[Q]], %[[K]] : tensor<5x3x8xf32>, tensor<5x3x8xf32>)
// CHECK-NOT: smartmem.view
func.func @f(%qkv: tensor<5x72xf32>) -> tensor<3x5x5xf32> {
  %q = smartmem.view %qkv at (d0, d1, d2) -> (d1, d0 * 8 + d2) : (tensor<5x72xf32>) -> tensor<3x5x8xf32>
  %k = smartmem.view %qkv at (d0, d1, d2) -> (d2, d0 * 8 + d1 + 24) : (tensor<5x72xf32>) -> tensor<3x8x5xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x5x5xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
  %0 = linalg.batch_matmul ins(%q, %k : tensor<3x5x8xf32>, tensor<3x8x5xf32>) outs(%start : tensor<3x5x5xf32>)
      -> tensor<3x5x5xf32>
  return %0 : tensor<3x5x5xf32>
}
