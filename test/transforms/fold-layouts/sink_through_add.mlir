// Two conversions in front of an addition become one behind it, which meets the conversion back and vanishes.
// RUN: smartmem-opt %s --smartmem-fold-layouts | FileCheck %s

#packed = #smartmem.layout<(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4), buffer>
// CHECK-LABEL: func.func @f
func.func @f(%a: tensor<8x16xf32>, %b: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // CHECK-NEXT: %[[S:.*]] = arith.addf %{{.*}}, %{{.*}} : tensor<8x16xf32>
  // CHECK-NEXT: return %[[S]]
  %0 = smartmem.convert_layout %a : tensor<8x16xf32> -> tensor<8x16xf32, #packed>
  %1 = smartmem.convert_layout %b : tensor<8x16xf32> -> tensor<8x16xf32, #packed>
  %2 = arith.addf %0, %1 : tensor<8x16xf32, #packed>
  %3 = smartmem.convert_layout %2 : tensor<8x16xf32, #packed> -> tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}
