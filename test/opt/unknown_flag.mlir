// RUN: not smartmem-opt %s --smartmem-fold-layout 2>&1 | FileCheck %s
// CHECK: smartmem-opt: Unknown command line argument '--smartmem-fold-layout'.
// CHECK: Did you mean '--smartmem-fold-layouts'?
func.func private @f()
