// RUN: smartmem-opt --allow-unregistered-dialect --smartmem-convert-to-iree='scope=encoder' %s | FileCheck %s

// CHECK: #flow.parameter.named<"encoder"::"w">
func.func @main() -> tensor<2xf32> {
  %0 = smartmem.parameter @w : tensor<2xf32>
  return %0 : tensor<2xf32>
}
