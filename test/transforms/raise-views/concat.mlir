// RUN: smartmem-opt %s --smartmem-raise-views | FileCheck %s

// CHECK-LABEL: func.func @f
func.func @f(%x: tensor<2x3xf32>, %y: tensor<2x5xf32>) -> tensor<2x11xf32> {
  // CHECK:      smartmem.view %arg0, %arg1 pieces [
  // CHECK-NEXT:   [0 to 2, 0 to 3] from 0 at (d0, d1) -> (d0, d1),
  // CHECK-NEXT:   [0 to 2, 3 to 8] from 1 at (d0, d1) -> (d0, d1 - 3),
  // CHECK-NEXT:   [0 to 2, 8 to 11] from 0 at (d0, d1) -> (d0, d1 - 8)
  %0 = tensor.concat dim(1) %x, %y, %x
      : (tensor<2x3xf32>, tensor<2x5xf32>, tensor<2x3xf32>) -> tensor<2x11xf32>
  return %0 : tensor<2x11xf32>
}
