// RUN: not smartmem-opt %s --pass-pipeline='builtin.module(func.func(smartmem-fold-layouts)' 2>&1 | FileCheck %s
// CHECK: error: {{.*}}encountered unbalanced parentheses while parsing pipeline
func.func private @f()
