// RUN: not smartmem-opt --allow-unregistered-dialect --smartmem-convert-to-iree %s 2>&1 | FileCheck %s

// CHECK: 'w' is a tensor<3xf32> here and a tensor<2xf32> elsewhere
func.func @main() -> (tensor<2xf32>, tensor<3xf32>) {
  %0 = smartmem.parameter @w : tensor<2xf32>
  %1 = smartmem.parameter @w : tensor<3xf32>
  return %0, %1 : tensor<2xf32>, tensor<3xf32>
}
