// Strides, and axes of extent 1 that are dropped in front, in the middle and behind.
// RUN: smartmem-opt %s --smartmem-raise-views | FileCheck %s

// CHECK-LABEL: func.func @strided
func.func @strided(%x: tensor<8x9xf32>) -> tensor<3x4xf32> {
  // CHECK: smartmem.view %arg0 at (d0, d1) -> (d0 * 2 + 1, d1 + 5)
  %0 = tensor.extract_slice %x[1, 5] [3, 4] [2, 1] : tensor<8x9xf32> to tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// CHECK-LABEL: func.func @drops_first
func.func @drops_first(%x: tensor<3x4x5xf32>) -> tensor<4x5xf32> {
  // CHECK: smartmem.view %arg0 at (d0, d1) -> (2, d0, d1)
  %0 = tensor.extract_slice %x[2, 0, 0] [1, 4, 5] [1, 1, 1] : tensor<3x4x5xf32> to tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// Only one of two axes of extent 1 is dropped.
// CHECK-LABEL: func.func @keeps_one
func.func @keeps_one(%x: tensor<3x4x5xf32>) -> tensor<1x4xf32> {
  // CHECK: smartmem.view %arg0 at (d0, d1) -> (2, d1, 3)
  %0 = tensor.extract_slice %x[2, 0, 3] [1, 4, 1] [1, 1, 1] : tensor<3x4x5xf32> to tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}

// An offset that is only known at run time stays an operation.
// CHECK-LABEL: func.func @dynamic_offset
func.func @dynamic_offset(%x: tensor<8xf32>, %i: index) -> tensor<3xf32> {
  // CHECK: tensor.extract_slice
  %0 = tensor.extract_slice %x[%i] [3] [1] : tensor<8xf32> to tensor<3xf32>
  return %0 : tensor<3xf32>
}
