// Without a conversion to meet, one conversion of the sum replaces those of its two operands.
// RUN: smartmem-opt %s --smartmem-print-cost --smartmem-fold-layouts --smartmem-print-cost 2>&1 | FileCheck %s

#packed = #smartmem.layout<(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4), buffer>
// CHECK: @f: 2 conversions (2048 bytes)
// CHECK: @f: 1 conversions (1024 bytes)
// CHECK: %[[S:.*]] = arith.addf %{{.*}}, %{{.*}} : tensor<8x16xf32>
// CHECK: smartmem.convert_layout %[[S]] reason "matmul wants it packed" : tensor<8x16xf32> -> tensor<8x16xf32, #layout>
func.func @f(%a: tensor<8x16xf32>, %b: tensor<8x16xf32>) -> tensor<8x16xf32, #packed> {
  %0 = smartmem.convert_layout %a : tensor<8x16xf32> -> tensor<8x16xf32, #packed>
  %1 = smartmem.convert_layout %b reason "matmul wants it packed" : tensor<8x16xf32> -> tensor<8x16xf32, #packed>
  %2 = arith.addf %0, %1 : tensor<8x16xf32, #packed>
  return %2 : tensor<8x16xf32, #packed>
}
