// RUN: smartmem-opt %s --smartmem-raise-views | FileCheck %s

// CHECK-LABEL: func.func @f
func.func @f(%x: tensor<3x5xf32>) -> tensor<3x4x5x2xf32> {
  // CHECK: smartmem.view %arg0 at (d0, d1, d2, d3) -> (d0, d2) : (tensor<3x5xf32>) -> tensor<3x4x5x2xf32>
  %e = tensor.empty() : tensor<3x4x5x2xf32>
  %0 = linalg.broadcast ins(%x : tensor<3x5xf32>) outs(%e : tensor<3x4x5x2xf32>) dimensions = [1, 3]
  return %0 : tensor<3x4x5x2xf32>
}
