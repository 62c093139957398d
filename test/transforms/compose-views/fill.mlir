// What lies in a border stays a constant when the padded tensor is moved on.
// RUN: smartmem-opt %s --smartmem-compose-views | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT: smartmem.view %arg0 pieces [
// CHECK-NEXT:   [0 to 4, 0 to 2] from 0 at (d0, d1) -> (d1, d0),
// CHECK-NEXT:   [0 to 4, 2 to 3] fill 5.000000e-01 : f32
// CHECK-NEXT: ]
// CHECK-NEXT: return
func.func @f(%x: tensor<2x4xf32>) -> tensor<4x3xf32> {
  %0 = smartmem.view %x pieces [
    [0 to 2, 0 to 4] from 0 at (d0, d1) -> (d0, d1), [2 to 3, 0 to 4] fill 0.5 : f32
  ] : (tensor<2x4xf32>) -> tensor<3x4xf32>
  %1 = smartmem.view %0 at (d0, d1) -> (d1, d0) : (tensor<3x4xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}
