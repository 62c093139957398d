// In an explicit pipeline a function pass must stand in func.func(...).
// RUN: not smartmem-opt %s --pass-pipeline='builtin.module(smartmem-fold-layouts)' 2>&1 | FileCheck %s
// CHECK: error: Can't add pass 'FoldLayouts' restricted to 'func.func' on a PassManager intended to run on 'builtin.module', did you intend to nest?
func.func private @f()
