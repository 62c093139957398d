// Windows and back again, with a roll and its inverse around them: nothing moves.
// RUN: smartmem-opt %s --smartmem-compose-views | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT: return %arg0
func.func @f(%x: tensor<6x6x4xf32>) -> tensor<6x6x4xf32> {
  %0 = smartmem.view %x at (d0, d1, d2) -> ((d0 + 1) mod 6, d1, d2) : (tensor<6x6x4xf32>) -> tensor<6x6x4xf32>
  %1 = smartmem.view %0 at (d0, d1, d2) -> ((d0 floordiv 2) * 3 + d1 floordiv 3, (d0 mod 2) * 3 + d1 mod 3, d2)
      : (tensor<6x6x4xf32>) -> tensor<4x9x4xf32>
  %2 = smartmem.view %1 at (d0, d1, d2) -> ((d0 floordiv 3) * 2 + d1 floordiv 3, (d0 mod 3) * 3 + d1 mod 3, d2)
      : (tensor<4x9x4xf32>) -> tensor<6x6x4xf32>
  %3 = smartmem.view %2 at (d0, d1, d2) -> ((d0 + 5) mod 6, d1, d2) : (tensor<6x6x4xf32>) -> tensor<6x6x4xf32>
  return %3 : tensor<6x6x4xf32>
}
