// RUN: not smartmem-opt %s '--smartmem-externalize-constants{min-element=2}' 2>&1 | FileCheck %s
// RUN: not smartmem-opt %s --pass-pipeline='builtin.module(smartmem-externalize-constants{min-element=2})' 2>&1 | FileCheck %s
// RUN: not smartmem-opt %s '--smartmem-fold-layouts{level=2}' 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK: error: smartmem-externalize-constants: no such option min-element; its options are min-elements, archive, prefix
// NONE: error: smartmem-fold-layouts: no such option level; it has no options
func.func private @f()
