// A reshape collapses each run of axes that changes and expands it again; others are not touched.
// RUN: smartmem-opt %s --smartmem-materialize-views | FileCheck %s --implicit-check-not=linalg.generic

// CHECK-LABEL: func.func @regroup
func.func @regroup(%x: tensor<4x6x5xf32>) -> tensor<8x3x5xf32> {
  // CHECK: %[[C:.*]] = tensor.collapse_shape %arg0 {{\[}}[0, 1], [2]] : tensor<4x6x5xf32> into tensor<24x5xf32>
  // CHECK: tensor.expand_shape %[[C]] {{\[}}[0, 1], [2]] output_shape [8, 3, 5]
  %0 = smartmem.view %x at (d0, d1, d2) -> ((d0 * 3 + d1) floordiv 6, (d0 * 3 + d1) mod 6, d2)
      : (tensor<4x6x5xf32>) -> tensor<8x3x5xf32>
  return %0 : tensor<8x3x5xf32>
}

// CHECK-LABEL: func.func @to_scalar
func.func @to_scalar(%x: tensor<1xf32>) -> tensor<f32> {
  // CHECK: tensor.collapse_shape %arg0 [] : tensor<1xf32> into tensor<f32>
  %0 = smartmem.view %x at () -> (0) : (tensor<1xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// CHECK-LABEL: func.func @from_scalar
func.func @from_scalar(%x: tensor<f32>) -> tensor<1x1xf32> {
  // CHECK: tensor.expand_shape %arg0 [] output_shape [1, 1] : tensor<f32> into tensor<1x1xf32>
  %0 = smartmem.view %x at (d0, d1) -> () : (tensor<f32>) -> tensor<1x1xf32>
  return %0 : tensor<1x1xf32>
}

// CHECK-LABEL: func.func @empty
func.func @empty(%x: tensor<0x4xf32>) -> tensor<4x0xf32> {
  // CHECK: tensor.empty() : tensor<4x0xf32>
  %0 = smartmem.view %x pieces [] : (tensor<0x4xf32>) -> tensor<4x0xf32>
  return %0 : tensor<4x0xf32>
}
