// Flags are a pipeline in the order of the command line; ours mix with upstream's, and nest by themselves.
// RUN: smartmem-opt %s --smartmem-print-cost --canonicalize --smartmem-print-cost 2>&1 | FileCheck %s
// RUN: smartmem-opt %s --canonicalize --smartmem-print-cost --smartmem-fold-layouts --cse --dump-pass-pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefix=PIPELINE

// CHECK: @f: 2 conversions
// CHECK: @f: 0 conversions
// PIPELINE:      builtin.module(
// PIPELINE-NEXT:   canonicalize
// PIPELINE-NEXT:   func.func(
// PIPELINE-NEXT:     smartmem-print-cost{json=false}
// PIPELINE-NEXT:   ),
// PIPELINE-NEXT:   func.func(
// PIPELINE-NEXT:     smartmem-fold-layouts
// PIPELINE-NEXT:   ),
// PIPELINE-NEXT:   cse
// PIPELINE-NEXT: )
#t = #smartmem.layout<(d0, d1) -> (d1, d0), buffer>
func.func @f(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = smartmem.convert_layout %a : tensor<4x8xf32> -> tensor<4x8xf32, #t>
  %1 = smartmem.convert_layout %0 : tensor<4x8xf32, #t> -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
