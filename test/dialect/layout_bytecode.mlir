// Layouts, pieces and classes survive bytecode.
// RUN: smartmem-opt %s --emit-bytecode -o %t.mlirbc
// RUN: smartmem-opt %t.mlirbc | FileCheck %s
// RUN: smartmem-opt %s -o %t.mlir
// RUN: smartmem-opt %t.mlirbc -o %t.again.mlir
// RUN: diff %t.mlir %t.again.mlir

// CHECK: #layout = #smartmem.layout<(d0, d1) -> (d1, d0 mod 8), buffer, pad = -inf>
#l = #smartmem.layout<(d0, d1) -> (d1, d0 mod 8), buffer, pad = -inf>
// CHECK-LABEL: func.func @all
func.func @all(%a: tensor<4x8xf32>) -> tensor<6x8xf32, #l> {
  // CHECK: %[[V:.*]] = smartmem.view %{{.*}} pieces [
  // CHECK-NEXT: [0 to 4, 0 to 8] from 0 at (d0, d1) -> (d0, d1),
  // CHECK-NEXT: [4 to 6, 0 to 8] fill 1.000000e+00 : f32
  // CHECK-NEXT: ] {smartmem.op_class = #smartmem.op_class<ili_fixed>} : (tensor<4x8xf32>) -> tensor<6x8xf32>
  %v = smartmem.view %a pieces [
    [0 to 4, 0 to 8] from 0 at (d0, d1) -> (d0, d1),
    [4 to 6, 0 to 8] fill 1.0 : f32
  ] {smartmem.op_class = #smartmem.op_class<ili_fixed>} : (tensor<4x8xf32>) -> tensor<6x8xf32>
  // CHECK: smartmem.convert_layout %[[V]] reason "edge" : tensor<6x8xf32> -> tensor<6x8xf32, #layout>
  %c = smartmem.convert_layout %v reason "edge" : tensor<6x8xf32> -> tensor<6x8xf32, #l>
  return %c : tensor<6x8xf32, #l>
}
