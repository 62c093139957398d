// A strided convolution with channels first: its taps become index maps. Other element types stay named.
// RUN: smartmem-opt %s --smartmem-generalize-convolutions | FileCheck %s

// CHECK: #[[IMAGE:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2 * 2 + d5, d3 * 2 + d6)>
// CHECK: #[[WEIGHT:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6)>
// CHECK: #[[RESULT:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>

// CHECK-LABEL: func.func @f32
// CHECK: linalg.generic {indexing_maps = [#[[IMAGE]], #[[WEIGHT]], #[[RESULT]]], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
// CHECK: arith.mulf
// CHECK: arith.addf
func.func @f32(%x: tensor<1x3x9x9xf32>, %w: tensor<8x3x3x3xf32>, %init: tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32> {
  %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
      ins(%x, %w : tensor<1x3x9x9xf32>, tensor<8x3x3x3xf32>) outs(%init : tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  return %r : tensor<1x8x4x4xf32>
}

// CHECK-LABEL: func.func @i32
// CHECK: linalg.conv_2d_nchw_fchw
func.func @i32(%x: tensor<1x3x9x9xi32>, %w: tensor<8x3x3x3xi32>, %init: tensor<1x8x7x7xi32>) -> tensor<1x8x7x7xi32> {
  %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%x, %w : tensor<1x3x9x9xi32>, tensor<8x3x3x3xi32>) outs(%init : tensor<1x8x7x7xi32>) -> tensor<1x8x7x7xi32>
  return %r : tensor<1x8x7x7xi32>
}
