// A sum over all pixels, channels last: along each line first, then over the lines. What is squared before it is summed
// is squared in the first. A sum over one dimension, and one of few terms, stay.
// RUN: smartmem-opt %s --smartmem-split-sums=longest=1000 | FileCheck %s

#pixel = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#channel = affine_map<(d0, d1, d2) -> (d2)>

// CHECK-LABEL: func.func @squares
// CHECK: %[[LINES:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "reduction", "parallel"]} ins(%arg0 : tensor<40x50x8xf32>) outs(%{{.*}} : tensor<40x8xf32>)
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]} ins(%[[LINES]] : tensor<40x8xf32>) outs(%arg1 : tensor<8xf32>)
// CHECK-NOT: arith.mulf
// CHECK: arith.addf
func.func @squares(%x: tensor<40x50x8xf32>, %start: tensor<8xf32>) -> tensor<8xf32> {
  %r = linalg.generic {indexing_maps = [#pixel, #channel], iterator_types = ["reduction", "reduction", "parallel"]}
      ins(%x : tensor<40x50x8xf32>) outs(%start : tensor<8xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %square = arith.mulf %a, %a : f32
    %s = arith.addf %sum, %square : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// CHECK-LABEL: func.func @few
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @few(%x: tensor<4x5x8xf32>, %start: tensor<8xf32>) -> tensor<8xf32> {
  %r = linalg.generic {indexing_maps = [#pixel, #channel], iterator_types = ["reduction", "reduction", "parallel"]}
      ins(%x : tensor<4x5x8xf32>) outs(%start : tensor<8xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %s = arith.addf %sum, %a : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// CHECK-LABEL: func.func @greatest
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @greatest(%x: tensor<40x50x8xf32>, %start: tensor<8xf32>) -> tensor<8xf32> {
  %r = linalg.generic {indexing_maps = [#pixel, #channel], iterator_types = ["reduction", "reduction", "parallel"]}
      ins(%x : tensor<40x50x8xf32>) outs(%start : tensor<8xf32>) {
  ^bb0(%a: f32, %most: f32):
    %s = arith.maximumf %most, %a : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
