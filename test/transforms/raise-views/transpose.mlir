// RUN: smartmem-opt %s --smartmem-raise-views | FileCheck %s

// CHECK-LABEL: func.func @f
func.func @f(%x: tensor<2x3x5xf32>) -> tensor<5x2x3xf32> {
  // CHECK: smartmem.view %arg0 at (d0, d1, d2) -> (d1, d2, d0) : (tensor<2x3x5xf32>) -> tensor<5x2x3xf32>
  %e = tensor.empty() : tensor<5x2x3xf32>
  %0 = linalg.transpose ins(%x : tensor<2x3x5xf32>) outs(%e : tensor<5x2x3xf32>) permutation = [2, 0, 1]
  return %0 : tensor<5x2x3xf32>
}
