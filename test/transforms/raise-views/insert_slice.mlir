// The hole reads the inserted tensor, boxes around it the other one.
// RUN: smartmem-opt %s --smartmem-raise-views | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK:      smartmem.view %arg1, %arg0 pieces [
// CHECK-NEXT:   [0 to 1, 0 to 6] from 0 at (d0, d1) -> (0, d1),
// CHECK-NEXT:   [1 to 3, 0 to 2] from 0 at (d0, d1) -> (d0, d1),
// CHECK-NEXT:   [1 to 3, 2 to 5] from 1 at (d0, d1) -> (d0 - 1, d1 - 2),
// CHECK-NEXT:   [1 to 3, 5 to 6] from 0 at (d0, d1) -> (d0, 5),
// CHECK-NEXT:   [3 to 4, 0 to 6] from 0 at (d0, d1) -> (3, d1)
func.func @f(%x: tensor<2x3xf32>, %into: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = tensor.insert_slice %x into %into[1, 2] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @adds_an_axis
// CHECK:      smartmem.view %arg1, %arg0 pieces [
// CHECK-NEXT:   [0 to 1, 0 to 3] from 0 at (d0, d1) -> (0, d1),
// CHECK-NEXT:   [1 to 2, 0 to 3] from 1 at (d0, d1) -> (d1)
func.func @adds_an_axis(%x: tensor<3xf32>, %into: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = tensor.insert_slice %x into %into[1, 0] [1, 3] [1, 1] : tensor<3xf32> into tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// With strides the inserted elements lie in many boxes: it stays.
// CHECK-LABEL: func.func @strided
func.func @strided(%x: tensor<2xf32>, %into: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: tensor.insert_slice
  %0 = tensor.insert_slice %x into %into[0] [2] [2] : tensor<2xf32> into tensor<4xf32>
  return %0 : tensor<4xf32>
}
