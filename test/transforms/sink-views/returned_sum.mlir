// The sum is returned: behind it the view would be a kernel of its own, in front of it it is none.
// RUN: smartmem-opt %s --smartmem-sink-views | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK: %[[P:.*]] = linalg.matmul
// CHECK: %[[V:.*]] = smartmem.view %[[P]] at (d0, d1) -> (-d0 + 7, d1)
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%arg0, %[[V]]
// CHECK: return %[[S]]
func.func @f(%x: tensor<8x3xf32>, %w: tensor<3x3xf32>) -> tensor<8x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x3xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<8x3xf32>) -> tensor<8x3xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %start1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %p = linalg.matmul ins(%x, %w : tensor<8x3xf32>, tensor<3x3xf32>) outs(%start : tensor<8x3xf32>)
      -> tensor<8x3xf32>
  %back = smartmem.view %p at (d0, d1) -> (-d0 + 7, d1) : (tensor<8x3xf32>) -> tensor<8x3xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %back : tensor<8x3xf32>, tensor<8x3xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %t = arith.addf %l, %r : f32
    linalg.yield %t : f32
  } -> tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}
