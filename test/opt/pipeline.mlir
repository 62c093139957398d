// RUN: smartmem-opt %s --pass-pipeline='builtin.module(func.func(smartmem-fold-layouts,cse),canonicalize)' | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT: return %{{.*}} : tensor<4x8xf32>
#t = #smartmem.layout<(d0, d1) -> (d1, d0), buffer>
func.func @f(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = smartmem.convert_layout %a : tensor<4x8xf32> -> tensor<4x8xf32, #t>
  %1 = smartmem.convert_layout %0 : tensor<4x8xf32, #t> -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
