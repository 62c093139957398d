// Conversions in a row become one, or none when they lead back.
// RUN: smartmem-opt %s --smartmem-fold-layouts | FileCheck %s

#packed = #smartmem.layout<(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4), buffer>
#tiled = #smartmem.layout<(d0, d1) -> (d0 floordiv 2, d1, d0 mod 2), buffer>
#turned = #smartmem.layout<(d0, d1) -> (d1, d0), buffer>

// CHECK-LABEL: func.func @three_in_a_row
func.func @three_in_a_row(%a: tensor<8x8xf32>) -> tensor<8x8xf32, #tiled> {
  // CHECK-NEXT: smartmem.convert_layout %{{.*}} reason "last" : tensor<8x8xf32> -> tensor<8x8xf32, #{{.*}}>
  // CHECK-NEXT: return
  %0 = smartmem.convert_layout %a reason "first" : tensor<8x8xf32> -> tensor<8x8xf32, #packed>
  %1 = smartmem.convert_layout %0 : tensor<8x8xf32, #packed> -> tensor<8x8xf32, #turned>
  %2 = smartmem.convert_layout %1 reason "last" : tensor<8x8xf32, #turned> -> tensor<8x8xf32, #tiled>
  return %2 : tensor<8x8xf32, #tiled>
}

// CHECK-LABEL: func.func @back
func.func @back(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK-NEXT: return
  %0 = smartmem.convert_layout %a : tensor<8x8xf32> -> tensor<8x8xf32, #packed>
  %1 = smartmem.convert_layout %0 : tensor<8x8xf32, #packed> -> tensor<8x8xf32, #turned>
  %2 = smartmem.convert_layout %1 : tensor<8x8xf32, #turned> -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
