// RUN: smartmem-opt %s --smartmem-fold-layouts --smartmem-print-cost --mlir-timing -o /dev/null 2>&1 | FileCheck %s
// CHECK: Execution time report
// CHECK: 'func.func' Pipeline
// CHECK: FoldLayouts
// CHECK: PrintCost
// CHECK: Total
func.func @f() { return }
