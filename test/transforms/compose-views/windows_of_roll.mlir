// Windows of a rolled image: the quotients and remainders of both are flat, none inside another.
// RUN: smartmem-opt %s --smartmem-compose-views | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT: smartmem.view %arg0 at (d0, d1, d2) ->
// CHECK-SAME: (((d0 floordiv 2) * 7 + d1 floordiv 7 + 3) mod 14, (d0 * 7 + d1 mod 7 + 3) mod 14, d2)
// CHECK-NEXT: return
func.func @f(%x: tensor<14x14x8xf32>) -> tensor<4x49x8xf32> {
  %0 = smartmem.view %x at (d0, d1, d2) -> ((d0 + 3) mod 14, (d1 + 3) mod 14, d2)
      : (tensor<14x14x8xf32>) -> tensor<14x14x8xf32>
  %1 = smartmem.view %0 at (d0, d1, d2, d3, d4) -> (d0 * 7 + d1, d2 * 7 + d3, d4)
      : (tensor<14x14x8xf32>) -> tensor<2x7x2x7x8xf32>
  %2 = smartmem.view %1 at (d0, d1, d2, d3, d4) -> (d0, d2, d1, d3, d4)
      : (tensor<2x7x2x7x8xf32>) -> tensor<2x2x7x7x8xf32>
  %3 = smartmem.view %2 at (d0, d1, d2) -> (d0 floordiv 2, d0 mod 2, d1 floordiv 7, d1 mod 7, d2)
      : (tensor<2x2x7x7x8xf32>) -> tensor<4x49x8xf32>
  return %3 : tensor<4x49x8xf32>
}
