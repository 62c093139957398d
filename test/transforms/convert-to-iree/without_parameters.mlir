// RUN: smartmem-opt --allow-unregistered-dialect --smartmem-convert-to-iree %s | FileCheck %s

// CHECK-NOT: util.global
// CHECK: return %arg0
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
