// Without a contraction in front of the view there is no kernel that the addition could join.
// RUN: smartmem-opt %s --smartmem-sink-views | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK: %[[V:.*]] = smartmem.view %arg0 at (d0, d1) -> (-d0 + 7, d1)
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[V]]
func.func @f(%x: tensor<8x3xf32>, %w: tensor<3x3xf32>) -> tensor<8x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x3xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<8x3xf32>) -> tensor<8x3xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %start1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %back = smartmem.view %x at (d0, d1) -> (-d0 + 7, d1) : (tensor<8x3xf32>) -> tensor<8x3xf32>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %back : tensor<8x3xf32>, tensor<8x3xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %t = arith.addf %l, %r : f32
    linalg.yield %t : f32
  } -> tensor<8x3xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<8x3xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%l: f32, %o: f32):
    %t = math.exp %l : f32
    linalg.yield %t : f32
  } -> tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}
