// RUN: smartmem-opt %s --smartmem-fold-layouts --cse --mlir-print-ir-after-all -o /dev/null 2>&1 | FileCheck %s
// RUN: smartmem-opt %s --smartmem-fold-layouts --cse --mlir-print-ir-after=smartmem-fold-layouts -o /dev/null 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: smartmem-opt %s --smartmem-fold-layouts --cse --mlir-print-ir-before=cse -o /dev/null 2>&1 | FileCheck %s --check-prefix=BEFORE
// RUN: smartmem-opt %s --smartmem-fold-layouts --mlir-print-ir-after-all --mlir-print-ir-after-change -o /dev/null 2>&1 | count 0

// CHECK: // -----// IR Dump After FoldLayouts (smartmem-fold-layouts) //----- //
// CHECK-NEXT: func.func @f
// CHECK: // -----// IR Dump After CSE (cse) //----- //
// ONE: IR Dump After FoldLayouts
// ONE-NOT: IR Dump
// BEFORE-NOT: FoldLayouts
// BEFORE: IR Dump Before CSE
func.func @f() { return }
