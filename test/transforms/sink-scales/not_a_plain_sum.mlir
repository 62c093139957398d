// The body adds 1 to each term: what it computes is no multiple of its input.
// RUN: smartmem-opt %s --smartmem-sink-scales | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#all = affine_map<(d0, d1) -> ()>
#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @f
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%arg0, %arg2 : tensor<4x8xf32>, tensor<f32>)
// CHECK: linalg.generic {{.*}} ins(%[[S]], %arg1 : tensor<4x8xf32>, tensor<8x6xf32>)
func.func @f(%q: tensor<4x8xf32>, %k: tensor<8x6xf32>, %s: tensor<f32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %scaled = linalg.generic {indexing_maps = [#id, #all, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q, %s : tensor<4x8xf32>, tensor<f32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %m = arith.mulf %x, %y : f32
    linalg.yield %m : f32
  } -> tensor<4x8xf32>
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e2 = tensor.empty() : tensor<4x6xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%scaled, %k : tensor<4x8xf32>, tensor<8x6xf32>) outs(%start : tensor<4x6xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %m = arith.mulf %x, %y : f32
    %t = arith.addf %o, %one : f32
    %u = arith.addf %t, %m : f32
    linalg.yield %u : f32
  } -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
