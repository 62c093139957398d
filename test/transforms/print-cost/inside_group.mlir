// What is inside a group counts too; bits are stored as bytes.
// RUN: smartmem-opt %s --smartmem-print-cost -o /dev/null 2>&1 | FileCheck %s
// CHECK: @f: 0 conversions (0 bytes), 1 views (6 bytes), 1 groups (12 bytes),
func.func @f(%a: tensor<2x3xi1>) -> tensor<3x2xi1> {
  %g = smartmem.group(%x = %a) : (tensor<2x3xi1>) -> tensor<3x2xi1> {
    %v = smartmem.view %x at (d0, d1) -> (d1, d0) : (tensor<2x3xi1>) -> tensor<3x2xi1>
    smartmem.yield %v : tensor<3x2xi1>
  }
  return %g : tensor<3x2xi1>
}
