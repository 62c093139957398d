// A pass anchored on functions runs where the pipeline says, and only there.
// RUN: smartmem-opt %s --pass-pipeline='builtin.module(builtin.module(func.func(smartmem-print-cost)))' 2>&1 | FileCheck %s

// CHECK-NOT: @outer
// CHECK: @inner: 0 conversions
// CHECK-NOT: @outer:
func.func @outer() { return }
module {
  func.func @inner() { return }
}
