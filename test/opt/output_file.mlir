// RUN: smartmem-opt %s -o %t.mlir | count 0
// RUN: FileCheck %s < %t.mlir
// CHECK: func.func private @f()
func.func private @f()
