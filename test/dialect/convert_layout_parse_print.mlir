// RUN: smartmem-opt %s | FileCheck %s
// RUN: smartmem-opt %s --verify-roundtrip -o /dev/null

#t = #smartmem.layout<(d0, d1) -> (d1, d0), buffer>

// CHECK-LABEL: func.func @convert
func.func @convert(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: %[[C:.*]] = smartmem.convert_layout %{{.*}} reason "columns are reduced" : tensor<4x8xf32> -> tensor<4x8xf32, #layout>
  %0 = smartmem.convert_layout %a reason "columns are reduced" : tensor<4x8xf32> -> tensor<4x8xf32, #t>
  // CHECK: smartmem.convert_layout %[[C]] {note} : tensor<4x8xf32, #layout> -> tensor<4x8xf32>
  %1 = smartmem.convert_layout %0 {note} : tensor<4x8xf32, #t> -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
