// RUN: not smartmem-opt --smartmem-convert-to-iree %s 2>&1 | FileCheck %s

// CHECK: the operations of IREE are unknown to MLIR; pass --allow-unregistered-dialect
func.func @main() -> tensor<2xf32> {
  %0 = smartmem.parameter @w : tensor<2xf32>
  return %0 : tensor<2xf32>
}
