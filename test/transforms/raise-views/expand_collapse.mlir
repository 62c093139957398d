// RUN: smartmem-opt %s --smartmem-raise-views | FileCheck %s

// CHECK-LABEL: func.func @expand
func.func @expand(%x: tensor<6x5xf32>) -> tensor<2x3x1x5xf32> {
  // CHECK: smartmem.view %arg0 at (d0, d1, d2, d3) -> (d0 * 3 + d1, d3)
  %0 = tensor.expand_shape %x [[0, 1, 2], [3]] output_shape [2, 3, 1, 5] : tensor<6x5xf32> into tensor<2x3x1x5xf32>
  return %0 : tensor<2x3x1x5xf32>
}

// CHECK-LABEL: func.func @collapse
func.func @collapse(%x: tensor<2x3x1x5xf32>) -> tensor<6x5xf32> {
  // CHECK: smartmem.view %arg0 at (d0, d1) -> (d0 floordiv 3, d0 mod 3, 0, d1)
  %0 = tensor.collapse_shape %x [[0, 1, 2], [3]] : tensor<2x3x1x5xf32> into tensor<6x5xf32>
  return %0 : tensor<6x5xf32>
}

// CHECK-LABEL: func.func @to_scalar
func.func @to_scalar(%x: tensor<1x1xf32>) -> tensor<f32> {
  // CHECK: smartmem.view %arg0 at () -> (0, 0) : (tensor<1x1xf32>) -> tensor<f32>
  %0 = tensor.collapse_shape %x [] : tensor<1x1xf32> into tensor<f32>
  return %0 : tensor<f32>
}

// A transpose that permutes nothing is no movement at all.
// CHECK-LABEL: func.func @nothing
func.func @nothing(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  // CHECK-NOT: smartmem.view
  // CHECK: return %arg0
  %e = tensor.empty() : tensor<4x5xf32>
  %0 = linalg.transpose ins(%x : tensor<4x5xf32>) outs(%e : tensor<4x5xf32>) permutation = [0, 1]
  return %0 : tensor<4x5xf32>
}
