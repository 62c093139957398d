// RUN: not smartmem-opt %s 2>&1 | FileCheck %s
func.func @f(%a: tensor<4xf32>) {
  // CHECK: invalid_ir.mlir:[[@LINE+1]]:8: error: 'smartmem.convert_layout' op may change only the encoding
  %0 = smartmem.convert_layout %a : tensor<4xf32> -> tensor<5xf32>
  return
}
