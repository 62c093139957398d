// Windows of an image as importers spell them: an expansion, a transpose of six axes, a collapse. Each becomes a view.
// RUN: smartmem-opt %s --smartmem-raise-views | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NOT: tensor.expand_shape
// CHECK: %[[A:.*]] = smartmem.view %arg0 at (d0, d1, d2, d3, d4, d5) -> (0, d1 * 7 + d2, d3 * 7 + d4, d5)
// CHECK: %[[B:.*]] = smartmem.view %[[A]] at (d0, d1, d2, d3, d4, d5) -> (0, d1, d3, d2, d4, d5)
// CHECK: smartmem.view %[[B]] at (d0, d1, d2) -> (0, d0 floordiv 2, d0 mod 2, d1 floordiv 7, d1 mod 7, d2)
func.func @f(%x: tensor<1x14x14x8xf32>) -> tensor<4x49x8xf32> {
  %0 = tensor.expand_shape %x [[0], [1, 2], [3, 4], [5]] output_shape [1, 2, 7, 2, 7, 8]
      : tensor<1x14x14x8xf32> into tensor<1x2x7x2x7x8xf32>
  %e = tensor.empty() : tensor<1x2x2x7x7x8xf32>
  %1 = linalg.transpose ins(%0 : tensor<1x2x7x2x7x8xf32>) outs(%e : tensor<1x2x2x7x7x8xf32>)
      permutation = [0, 1, 3, 2, 4, 5]
  %2 = tensor.collapse_shape %1 [[0, 1, 2], [3, 4], [5]] : tensor<1x2x2x7x7x8xf32> into tensor<4x49x8xf32>
  return %2 : tensor<4x49x8xf32>
}
