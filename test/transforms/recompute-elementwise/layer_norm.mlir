// The difference from the mean is read by the sum of squares and by the scaling: both subtract for themselves.
// RUN: smartmem-opt %s --smartmem-recompute-elementwise | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK: %[[V:.*]] = linalg.generic {{.*}}"reduction"]} ins(%arg0, %arg1 : tensor<4x8xf32>, tensor<4xf32>)
// CHECK: arith.subf
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1, %[[V]] : tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
// CHECK: arith.subf
// CHECK-NOT: arith.subf
func.func @f(%x: tensor<4x8xf32>, %mean: tensor<4xf32>, %start: tensor<4xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mean : tensor<4x8xf32>, tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %s = arith.subf %a, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %v = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%d : tensor<4x8xf32>) outs(%start : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %q = arith.mulf %a, %a : f32
    %s = arith.addf %q, %o : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%d, %v : tensor<4x8xf32>, tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
