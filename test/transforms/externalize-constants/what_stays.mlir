// Small constants, splats, scalars, bf16 (NumPy has no such type) and what is inside a group.
// RUN: rm -f %t.npz
// RUN: smartmem-opt %s '--smartmem-externalize-constants{min-elements=3 archive=%t.npz}' | FileCheck %s

// CHECK-NOT: smartmem.parameter
func.func @f() {
  %small = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %splat = arith.constant dense<1.0> : tensor<1000xf32>
  %scalar = arith.constant 1.0 : f32
  %bf16 = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xbf16>
  %g = smartmem.group() : () -> tensor<3xf32> {
    %inside = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
    smartmem.yield %inside : tensor<3xf32>
  }
  return
}
