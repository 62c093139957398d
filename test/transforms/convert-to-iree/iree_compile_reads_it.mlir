// RUN: smartmem-opt --allow-unregistered-dialect --smartmem-convert-to-iree %s | iree-compile --compile-to=input - | FileCheck %s

// IREE is the verifier of what we emit.

// CHECK: util.global private @parameter_w = #flow.parameter.named<"model"::"w"> : tensor<2xf32>
// CHECK: util.global.load immutable @parameter_w : tensor<2xf32>
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %w = smartmem.parameter @w : tensor<2xf32>
  %0 = arith.addf %x, %w : tensor<2xf32>
  return %0 : tensor<2xf32>
}
