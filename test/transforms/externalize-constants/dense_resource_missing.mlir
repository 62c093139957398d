// A resource without bytes is an error, not a parameter without values.
// RUN: rm -f %t.npz
// RUN: smartmem-opt %s '--smartmem-externalize-constants{min-elements=1 archive=%t.npz}' --verify-diagnostics
// RUN: not test -e %t.npz

func.func @f() -> tensor<4xf32> {
  // expected-error@+1 {{smartmem-externalize-constants: constant has no values in this module; keep its resource section}}
  %a = arith.constant dense_resource<weights> : tensor<4xf32>
  return %a : tensor<4xf32>
}
