// Through a chain of elementwise operations, with a splat that is free in any layout.
// RUN: smartmem-opt %s --smartmem-fold-layouts | FileCheck %s

#packed = #smartmem.layout<(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4), buffer>
// CHECK-LABEL: func.func @f
// CHECK-NOT: convert_layout
// CHECK: arith.constant dense<2.000000e+00> : tensor<8x16xf32>
// CHECK: math.exp %{{.*}} : tensor<8x16xf32>
// CHECK: arith.mulf %{{.*}}, %{{.*}} : tensor<8x16xf32>
// CHECK: arith.mulf %{{.*}}, %{{.*}} : tensor<8x16xf32>
// CHECK-NOT: convert_layout
func.func @f(%a: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %c = arith.constant dense<2.0> : tensor<8x16xf32, #packed>
  %0 = smartmem.convert_layout %a : tensor<8x16xf32> -> tensor<8x16xf32, #packed>
  %1 = math.exp %0 : tensor<8x16xf32, #packed>
  %2 = arith.mulf %c, %1 : tensor<8x16xf32, #packed>
  %3 = arith.mulf %2, %2 : tensor<8x16xf32, #packed>
  %4 = smartmem.convert_layout %3 : tensor<8x16xf32, #packed> -> tensor<8x16xf32>
  return %4 : tensor<8x16xf32>
}
