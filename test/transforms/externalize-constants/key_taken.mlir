// Keys of parameters that the module has already are passed over.
// RUN: rm -f %t.npz
// RUN: smartmem-opt %s '--smartmem-externalize-constants{min-elements=1 archive=%t.npz prefix=w}' | FileCheck %s

func.func @f() -> (tensor<2xf32>, tensor<2xf32>) {
  // CHECK: smartmem.parameter @w.1 : tensor<2xf32>
  %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  // CHECK: smartmem.parameter @w.0 : tensor<2xf32>
  %b = smartmem.parameter @w.0 : tensor<2xf32>
  return %a, %b : tensor<2xf32>, tensor<2xf32>
}
