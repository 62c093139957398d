// A reproducer of a failing pipeline runs again and fails alike.
// RUN: not smartmem-opt %s '--smartmem-externalize-constants{min-elements=2}' --mlir-pass-pipeline-crash-reproducer=%t.mlir 2>&1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=FILE < %t.mlir
// RUN: not smartmem-opt %t.mlir --run-reproducer 2>&1 | FileCheck %s

// CHECK: smartmem-externalize-constants: no archive
// FILE: pipeline: "builtin.module(smartmem-externalize-constants{archive= min-elements=2 prefix=constant})"
func.func @f() -> tensor<2xf32> {
  %0 = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
