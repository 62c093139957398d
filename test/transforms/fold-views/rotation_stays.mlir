// No split of a dimension makes a rotation strided: the view stays in front of the product.
// RUN: smartmem-opt %s --smartmem-fold-views | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK: %[[V:.*]] = smartmem.view %arg0 at (d0, d1) -> ((d0 + 3) mod 8, d1)
// CHECK: linalg.matmul ins(%[[V]], %arg1
func.func @f(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>) -> tensor<8x6xf32> {
  %rolled = smartmem.view %x at (d0, d1) -> ((d0 + 3) mod 8, d1) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x6xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<8x6xf32>) -> tensor<8x6xf32>
  %0 = linalg.matmul ins(%rolled, %w : tensor<8x4xf32>, tensor<4x6xf32>) outs(%start : tensor<8x6xf32>)
      -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
