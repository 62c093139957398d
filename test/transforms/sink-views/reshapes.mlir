// Rows of a product, grouped, and a bias a group: the addition reads the product as it is, and the bias by quotient.
// RUN: smartmem-opt %s --smartmem-sink-views=reshapes=true | FileCheck %s
// RUN: smartmem-opt %s --smartmem-sink-views | FileCheck %s --check-prefix=ONLY-MOVING

#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#first = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-LABEL: func.func @f
// CHECK: %[[P:.*]] = linalg.matmul
// CHECK: %[[B:.*]] = smartmem.view %arg2 at (d0, d1) -> (d0 floordiv 4, d1) : (tensor<2x3xf32>) -> tensor<8x3xf32>
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[B]] : tensor<8x3xf32>, tensor<8x3xf32>)
// CHECK: smartmem.view %[[S]] at (d0, d1, d2) -> (d0 * 4 + d1, d2) : (tensor<8x3xf32>) -> tensor<2x4x3xf32>
// ONLY-MOVING: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x4x3xf32>)
func.func @f(%a: tensor<8x5xf32>, %w: tensor<5x3xf32>, %bias: tensor<2x3xf32>) -> tensor<2x4x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<8x3xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e0 : tensor<8x3xf32>) -> tensor<8x3xf32>
  %p = linalg.matmul ins(%a, %w : tensor<8x5xf32>, tensor<5x3xf32>) outs(%start : tensor<8x3xf32>) -> tensor<8x3xf32>
  %v = smartmem.view %p at (d0, d1, d2) -> (d0 * 4 + d1, d2) : (tensor<8x3xf32>) -> tensor<2x4x3xf32>
  %e1 = tensor.empty() : tensor<2x4x3xf32>
  %0 = linalg.generic {indexing_maps = [#id3, #first, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%v, %bias : tensor<2x4x3xf32>, tensor<2x3xf32>) outs(%e1 : tensor<2x4x3xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %t = arith.addf %l, %r : f32
    linalg.yield %t : f32
  } -> tensor<2x4x3xf32>
  return %0 : tensor<2x4x3xf32>
}
