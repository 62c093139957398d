// Between the product and the residual sum stands a reshape, which IREE does not distribute inside a region: no group.
// RUN: smartmem-opt %s --smartmem-pin-epilogues | FileCheck %s --implicit-check-not=smartmem.group

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK: linalg.matmul
// CHECK: tensor.collapse_shape
// CHECK: linalg.generic
func.func @f(%a: tensor<8x5xf32>, %w: tensor<5x3xf32>, %x: tensor<8x3xf32>) -> tensor<8x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x3xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<8x3xf32>) -> tensor<8x3xf32>
  %m = linalg.matmul ins(%a, %w : tensor<8x5xf32>, tensor<5x3xf32>) outs(%start : tensor<8x3xf32>) -> tensor<8x3xf32>
  %m1 = tensor.expand_shape %m [[0, 1], [2]] output_shape [1, 8, 3] : tensor<8x3xf32> into tensor<1x8x3xf32>
  %p = tensor.collapse_shape %m1 [[0, 1], [2]] : tensor<1x8x3xf32> into tensor<8x3xf32>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %x : tensor<8x3xf32>, tensor<8x3xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %t = arith.addf %l, %r : f32
    linalg.yield %t : f32
  } -> tensor<8x3xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %start1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<8x3xf32>) outs(%start1 : tensor<8xf32>) {
  ^bb0(%l: f32, %o: f32):
    %t = arith.addf %l, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s, %sum : tensor<8x3xf32>, tensor<8xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %t = arith.divf %l, %r : f32
    linalg.yield %t : f32
  } -> tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}
