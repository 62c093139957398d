// Every dimension has extent 1: an operation on scalars.
// RUN: smartmem-opt %s --smartmem-drop-unit-dims | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @f
// CHECK: %[[X:.*]] = smartmem.view %arg0 at () -> (0, 0) : (tensor<1x1xf32>) -> tensor<f32>
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} iterator_types = []} ins(%[[X]] : tensor<f32>)
// CHECK: smartmem.view %[[Y]] at (d0, d1) -> () : (tensor<f32>) -> tensor<1x1xf32>
func.func @f(%x: tensor<1x1xf32>) -> tensor<1x1xf32> {
  %e = tensor.empty() : tensor<1x1xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<1x1xf32>) outs(%e : tensor<1x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<1x1xf32>
  return %0 : tensor<1x1xf32>
}
