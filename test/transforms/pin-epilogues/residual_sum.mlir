// A residual sum that a row sum and an addition read: it is computed in the product's kernel, for both.
// RUN: smartmem-opt %s --smartmem-pin-epilogues | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK: %[[S:.*]] = smartmem.group(%[[A:.*]] = %arg0, %[[W:.*]] = %arg1, %[[X:.*]] = %arg2)
// CHECK-DAG: %[[Z:.*]] = arith.constant 0.0
// CHECK-DAG: tensor.empty
// CHECK: linalg.fill ins(%[[Z]]
// CHECK: %[[P:.*]] = linalg.matmul ins(%[[A]], %[[W]]
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[X]]
// CHECK: smartmem.yield %[[T]]
// CHECK: }
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%[[S]]
// CHECK: linalg.generic {{.*}} ins(%[[S]],
func.func @f(%a: tensor<8x5xf32>, %w: tensor<5x3xf32>, %x: tensor<8x3xf32>) -> tensor<8x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x3xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<8x3xf32>) -> tensor<8x3xf32>
  %p = linalg.matmul ins(%a, %w : tensor<8x5xf32>, tensor<5x3xf32>) outs(%start : tensor<8x3xf32>) -> tensor<8x3xf32>
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
