// The product after the normalisation is returned as it is: its rows have to be in order, so that the normalisation
// reads the sum through the view and nothing behind it is moved.
// RUN: smartmem-opt %s --smartmem-sink-views | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x3xf32>, tensor<8x3xf32>)
// CHECK: %[[V:.*]] = smartmem.view %[[S]] at (d0, d1) -> (-d0 + 7, d1)
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[V]]
// CHECK: %[[N:.*]] = linalg.generic {{.*}} ins(%[[V]], %[[SUM]]
// CHECK: %[[F:.*]] = linalg.matmul ins(%[[N]], %arg1
// CHECK: return %[[F]]
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
  %0 = linalg.matmul ins(%n, %w : tensor<8x3xf32>, tensor<3x3xf32>) outs(%start : tensor<8x3xf32>)
      -> tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}
