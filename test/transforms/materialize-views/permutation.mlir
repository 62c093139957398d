// Windows of an image in front of a product: a permuted copy over the digits of its axes, with no division in it.
// RUN: smartmem-opt %s --smartmem-materialize-views | FileCheck %s

// CHECK-DAG: #[[IN:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d3, d4)>
// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
// CHECK-LABEL: func.func @f
// CHECK: %[[E:.*]] = tensor.expand_shape %arg0 {{.*}} into tensor<2x7x2x7x4xf32>
// CHECK: %[[C:.*]] = linalg.generic {indexing_maps = [#[[IN]], #[[OUT]]]{{.*}} ins(%[[E]] : tensor<2x7x2x7x4xf32>)
// CHECK-NOT: linalg.index
// CHECK: tensor.collapse_shape %[[C]] {{.*}} into tensor<196x4xf32>
func.func @f(%x: tensor<14x14x4xf32>, %w: tensor<4x5xf32>, %c: tensor<196x5xf32>) -> tensor<196x5xf32> {
  %v = smartmem.view %x at (d0, d1) ->
        ((d0 floordiv 98) * 7 + (d0 mod 49) floordiv 7, ((d0 floordiv 49) mod 2) * 7 + d0 mod 7, d1)
      : (tensor<14x14x4xf32>) -> tensor<196x4xf32>
  %0 = linalg.matmul ins(%v, %w : tensor<196x4xf32>, tensor<4x5xf32>) outs(%c : tensor<196x5xf32>)
      -> tensor<196x5xf32>
  return %0 : tensor<196x5xf32>
}
