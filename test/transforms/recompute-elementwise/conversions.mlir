// A norm of f16 in f32: the mean and the difference from it extend what they read themselves. With `conversions` nothing
// else moves: the difference stays, although two operations read it. A contraction takes nothing.
// RUN: smartmem-opt %s --smartmem-recompute-elementwise=conversions=true | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @norm
// CHECK-NOT: arith.extf %{{.*}}
// CHECK: %[[MEAN:.*]] = linalg.generic {{.*}}"reduction"]} ins(%arg0 : tensor<4x8xf16>)
// CHECK: arith.extf
// CHECK: %[[D:.*]] = linalg.generic {{.*}} ins(%arg0, %[[MEAN]] : tensor<4x8xf16>, tensor<4xf32>)
// CHECK: arith.extf
// CHECK: arith.subf
// CHECK: linalg.generic {{.*}} ins(%[[D]] : tensor<4x8xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[D]], %{{.*}} : tensor<4x8xf32>, tensor<4xf32>)
func.func @norm(%x: tensor<4x8xf16>, %start: tensor<4xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf16>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f16, %o: f32):
    %s = arith.extf %a : f16 to f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %mean = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%w : tensor<4x8xf32>) outs(%start : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w, %mean : tensor<4x8xf32>, tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
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
