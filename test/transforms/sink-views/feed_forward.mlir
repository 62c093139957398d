// A normalisation, a product and a residual addition after a reversed product: all of it computes in the product's
// order, only the first residual is reversed on the way in and the last sum on the way out.
// RUN: smartmem-opt %s --smartmem-sink-views | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK: %[[P:.*]] = linalg.matmul ins(%arg0
// CHECK: %[[X:.*]] = smartmem.view %arg0 at (d0, d1) -> (-d0 + 7, d1)
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[P]]
// CHECK-NOT: smartmem.view
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[S]]
// CHECK: %[[N:.*]] = linalg.generic {{.*}} ins(%[[S]], %[[SUM]]
// CHECK: %[[F:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[N]], %arg1
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[S]], %[[F]]
// CHECK: %[[OUT:.*]] = smartmem.view %[[R]] at (d0, d1) -> (-d0 + 7, d1)
// CHECK: linalg.generic {{.*}} ins(%[[OUT]]
func.func @f(%x: tensor<8x3xf32>, %w: tensor<3x3xf32>) -> tensor<8x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x3xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<8x3xf32>) -> tensor<8x3xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %start1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %p = linalg.matmul ins(%x, %w : tensor<8x3xf32>, tensor<3x3xf32>) outs(%start : tensor<8x3xf32>)
      -> tensor<8x3xf32>
  %back = smartmem.view %p at (d0, d1) -> (-d0 + 7, d1) : (tensor<8x3xf32>) -> tensor<8x3xf32>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %back : tensor<8x3xf32>, tensor<8x3xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %t = arith.addf %l, %r : f32
    linalg.yield %t : f32
  } -> tensor<8x3xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<8x3xf32>) outs(%start1 : tensor<8xf32>) {
  ^bb0(%l: f32, %o: f32):
    %t = arith.addf %l, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %n = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s, %sum : tensor<8x3xf32>, tensor<8xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %t = arith.divf %l, %r : f32
    linalg.yield %t : f32
  } -> tensor<8x3xf32>
  %f = linalg.matmul ins(%n, %w : tensor<8x3xf32>, tensor<3x3xf32>) outs(%start : tensor<8x3xf32>)
      -> tensor<8x3xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s, %f : tensor<8x3xf32>, tensor<8x3xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %t = arith.addf %l, %r : f32
    linalg.yield %t : f32
  } -> tensor<8x3xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%r : tensor<8x3xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%l: f32, %o: f32):
    %t = math.exp %l : f32
    linalg.yield %t : f32
  } -> tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}
