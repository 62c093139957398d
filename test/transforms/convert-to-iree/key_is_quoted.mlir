// RUN: smartmem-opt --allow-unregistered-dialect --smartmem-convert-to-iree %s | FileCheck %s

// Keys are any text: quotes, backslashes and other bytes are escaped as MLIR does.

// CHECK: #flow.parameter.named<"model"::"layers.0/\22w\22 \C3\BC\5C">
func.func @main() -> tensor<2xf32> {
  %0 = smartmem.parameter @"layers.0/\22w\22 ü\5C" : tensor<2xf32>
  return %0 : tensor<2xf32>
}
