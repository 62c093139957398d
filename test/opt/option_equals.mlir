// Options after `=`, as mlir-opt spells them.
// RUN: rm -f %t.npz
// RUN: smartmem-opt %s --smartmem-externalize-constants="min-elements=2 archive=%t.npz prefix=w" | FileCheck %s
// RUN: smartmem-opt %s --smartmem-externalize-constants="min-elements=5 archive=%t.npz" | FileCheck %s --check-prefix=STAYS

// CHECK: smartmem.parameter @w.0 : tensor<4xf32>
// STAYS: arith.constant dense<
func.func @f() -> tensor<4xf32> {
  %0 = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}
