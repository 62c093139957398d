// Rows of 25 cut rows of 3 and 4 into hundreds of boxes: the concatenation stays a tensor that is read once.
// RUN: smartmem-opt %s --smartmem-compose-views | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK: %[[C:.*]] = smartmem.view %arg0, %arg1 pieces
// CHECK: smartmem.view %[[C]] at (d0, d1) -> ((d0 * 25 + d1) floordiv 7, (d0 * 25 + d1) mod 7)
func.func @f(%x: tensor<200x3xf32>, %y: tensor<200x4xf32>) -> tensor<56x25xf32> {
  %0 = smartmem.view %x, %y pieces [
    [0 to 200, 0 to 3] from 0 at (d0, d1) -> (d0, d1), [0 to 200, 3 to 7] from 1 at (d0, d1) -> (d0, d1 - 3)
  ] : (tensor<200x3xf32>, tensor<200x4xf32>) -> tensor<200x7xf32>
  %1 = smartmem.view %0 at (d0, d1) -> ((d0 * 25 + d1) floordiv 7, (d0 * 25 + d1) mod 7)
      : (tensor<200x7xf32>) -> tensor<56x25xf32>
  return %1 : tensor<56x25xf32>
}
