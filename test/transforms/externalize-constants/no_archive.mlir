// Without an archive the pass passes a module that needs none, and fails otherwise.
// RUN: smartmem-opt %s --smartmem-externalize-constants | FileCheck %s
// RUN: not smartmem-opt %s '--smartmem-externalize-constants{min-elements=2}' 2>&1 | FileCheck %s --check-prefix=ERROR

// ERROR: no archive to keep the values of this constant; give archive=
// CHECK: arith.constant dense<[1.000000e+00, 2.000000e+00]>
func.func @f() -> tensor<2xf32> {
  %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %a : tensor<2xf32>
}
