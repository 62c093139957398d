// Elements in memory order: an expansion, a slice and a collapse move nothing.
// RUN: smartmem-opt %s --smartmem-materialize-views | FileCheck %s --implicit-check-not=linalg.generic

// CHECK-LABEL: func.func @strided
func.func @strided(%x: tensor<7x6xf32>) -> tensor<3x2xf32> {
  // CHECK: tensor.extract_slice %arg0[1, 3] [3, 2] [2, 1]
  %0 = smartmem.view %x at (d0, d1) -> (d0 * 2 + 1, d1 + 3) : (tensor<7x6xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// A stride that divides the axis is an axis of its own.
// CHECK-LABEL: func.func @odd_rows
func.func @odd_rows(%x: tensor<8x6xf32>) -> tensor<4x6xf32> {
  // CHECK: %[[E:.*]] = tensor.expand_shape %arg0 {{.*}} into tensor<4x2x6xf32>
  // CHECK: tensor.extract_slice %[[E]][0, 1, 0] [4, 1, 6] [1, 1, 1] : tensor<4x2x6xf32> to tensor<4x6xf32>
  %0 = smartmem.view %x at (d0, d1) -> (d0 * 2 + 1, d1) : (tensor<8x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// The second third of a projection, by heads of eight.
// CHECK-LABEL: func.func @heads
func.func @heads(%x: tensor<5x72xf32>) -> tensor<5x3x8xf32> {
  // CHECK: %[[E:.*]] = tensor.expand_shape %arg0 {{.*}} : tensor<5x72xf32> into tensor<5x9x8xf32>
  // CHECK: tensor.extract_slice %[[E]][0, 3, 0] [5, 3, 8] [1, 1, 1]
  %0 = smartmem.view %x at (d0, d1, d2) -> (d0, d1 * 8 + d2 + 24) : (tensor<5x72xf32>) -> tensor<5x3x8xf32>
  return %0 : tensor<5x3x8xf32>
}
