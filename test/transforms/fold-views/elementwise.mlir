// Elementwise operations absorb permutations and broadcasts, but no split of an axis: that would change their loops.
// RUN: smartmem-opt %s --smartmem-fold-views | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[SWAP:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK: %[[S:.*]] = smartmem.view %arg2 at (d0, d1) -> (d1 floordiv 3, d0, d1 mod 3)
// CHECK: linalg.generic {indexing_maps = [#[[SWAP]], #[[ROW]], #{{.*}}, #{{.*}}]
// CHECK-SAME: ins(%arg0, %arg1, %[[S]] : tensor<6x4xf32>, tensor<4xf32>, tensor<4x6xf32>)
func.func @f(%x: tensor<6x4xf32>, %y: tensor<4xf32>, %z: tensor<2x4x3xf32>) -> tensor<4x6xf32> {
  %a = smartmem.view %x at (d0, d1) -> (d1, d0) : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %b = smartmem.view %y at (d0, d1) -> (d0) : (tensor<4xf32>) -> tensor<4x6xf32>
  %c = smartmem.view %z at (d0, d1) -> (d1 floordiv 3, d0, d1 mod 3) : (tensor<2x4x3xf32>) -> tensor<4x6xf32>
  %e = tensor.empty() : tensor<4x6xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b, %c : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32, %o: f32):
    %s = arith.addf %u, %v : f32
    %t = arith.mulf %s, %w : f32
    linalg.yield %t : f32
  } -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
