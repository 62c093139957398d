// The product is read in both orders: writing it turned would only turn the other reader's.
// RUN: smartmem-opt %s --smartmem-fold-views | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK: %[[P:.*]] = linalg.matmul
// CHECK: %[[T:.*]] = smartmem.view %[[P]] at (d0, d1) -> (d1, d0)
// CHECK: return %[[P]], %[[T]]
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>) -> (tensor<4x6xf32>, tensor<6x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%start : tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = smartmem.view %0 at (d0, d1) -> (d1, d0) : (tensor<4x6xf32>) -> tensor<6x4xf32>
  return %0, %1 : tensor<4x6xf32>, tensor<6x4xf32>
}
