// The product reads through the view; what else reads it still does.
// RUN: smartmem-opt %s --smartmem-fold-views | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK: %[[T:.*]] = smartmem.view %arg1 at (d0, d1) -> (d1, d0)
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<4x8xf32>, tensor<6x8xf32>)
// CHECK: math.exp %[[T]]
func.func @f(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) -> (tensor<4x6xf32>, tensor<8x6xf32>) {
  %turned = smartmem.view %w at (d0, d1) -> (d1, d0) : (tensor<6x8xf32>) -> tensor<8x6xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = linalg.matmul ins(%x, %turned : tensor<4x8xf32>, tensor<8x6xf32>) outs(%start : tensor<4x6xf32>)
      -> tensor<4x6xf32>
  %1 = math.exp %turned : tensor<8x6xf32>
  return %0, %1 : tensor<4x6xf32>, tensor<8x6xf32>
}
