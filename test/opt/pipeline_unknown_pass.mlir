// RUN: not smartmem-opt %s --pass-pipeline='builtin.module(smartmem-fold-layout)' 2>&1 | FileCheck %s
// CHECK: error: 'smartmem-fold-layout' does not refer to a registered pass or pass pipeline
func.func private @f()
