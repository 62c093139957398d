// Rows of 9 cut rows of 3 and 4 into 23 boxes: 23 selects an element cost more than writing the rows of 7 once.
// RUN: smartmem-opt %s --smartmem-compose-views | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK: %[[C:.*]] = smartmem.view %arg0, %arg1 pieces
// CHECK: smartmem.view %[[C]] at (d0, d1) -> ((d0 * 9 + d1) floordiv 7, (d0 * 9 + d1) mod 7)
func.func @f(%x: tensor<9x3xf32>, %y: tensor<9x4xf32>) -> tensor<7x9xf32> {
  %0 = smartmem.view %x, %y pieces [
    [0 to 9, 0 to 3] from 0 at (d0, d1) -> (d0, d1), [0 to 9, 3 to 7] from 1 at (d0, d1) -> (d0, d1 - 3)
  ] : (tensor<9x3xf32>, tensor<9x4xf32>) -> tensor<9x7xf32>
  %1 = smartmem.view %0 at (d0, d1) -> ((d0 * 9 + d1) floordiv 7, (d0 * 9 + d1) mod 7)
      : (tensor<9x7xf32>) -> tensor<7x9xf32>
  return %1 : tensor<7x9xf32>
}
