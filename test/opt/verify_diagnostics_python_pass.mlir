// Errors of passes in Python are diagnostics like any other.
// RUN: smartmem-opt %s --verify-diagnostics --smartmem-externalize-constants='min-elements=2'

func.func @f() -> tensor<2xf32> {
  // expected-error@+1 {{smartmem-externalize-constants: no archive to keep the values of this constant; give archive=}}
  %0 = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
