// A pass may create operations of a dialect that the input does not use.
// RUN: rm -f %t.npz
// RUN: smartmem-opt %s '--smartmem-externalize-constants{min-elements=1 archive=%t.npz}' | FileCheck %s
// CHECK: smartmem.parameter
func.func @f() -> tensor<2xf32> {
  %0 = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
