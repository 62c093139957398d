// Rows of windows of a rolled image, read by the operation that adds to them: it computes their position itself.
// RUN: smartmem-opt %s --smartmem-absorb-views | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @f
// CHECK-NOT: smartmem.view
// CHECK: linalg.generic {{.*}} ins(%arg1 : tensor<36x4xf32>)
// CHECK: %[[I:.*]] = linalg.index 0
// CHECK: %[[R:.*]] = affine.apply #{{.*}}(%[[I]])
// CHECK: %[[E:.*]] = tensor.extract %arg0[%[[R]], %{{.*}}, %{{.*}}] : tensor<6x6x4xf32>
// CHECK: arith.addf %[[E]], %in
func.func @f(%x: tensor<6x6x4xf32>, %y: tensor<36x4xf32>) -> tensor<36x4xf32> {
  %v = smartmem.view %x at (d0, d1) -> ((d0 floordiv 6 + 1) mod 6, d0 mod 6, d1)
      : (tensor<6x6x4xf32>) -> tensor<36x4xf32>
  %e = tensor.empty() : tensor<36x4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%v, %y : tensor<36x4xf32>, tensor<36x4xf32>) outs(%e : tensor<36x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<36x4xf32>
  return %0 : tensor<36x4xf32>
}
