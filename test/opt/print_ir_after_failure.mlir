// RUN: not smartmem-opt %s --cse '--smartmem-externalize-constants{min-elements=1}' --mlir-print-ir-after-failure 2>&1 | FileCheck %s
// CHECK: // -----// IR Dump After ExternalizeConstants Failed (smartmem-externalize-constants) //----- //
func.func @f() -> tensor<2xf32> {
  %0 = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
