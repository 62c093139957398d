// Nothing that reads the view is a contraction: code generators compute its index where it is read.
// RUN: smartmem-opt %s --smartmem-hoist-views | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @f
// CHECK: %[[N:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<6x4xf32>)
// CHECK: smartmem.view %[[N]] at
func.func @f(%x: tensor<6x4xf32>, %w: tensor<4x5xf32>) -> tensor<6x4xf32> {
  %e = tensor.empty() : tensor<6x4xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<6x4xf32>) outs(%e : tensor<6x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.tanh %a : f32
    linalg.yield %t : f32
  } -> tensor<6x4xf32>
  %v = smartmem.view %y at (d0, d1) -> ((d0 + 1) mod 6, d1) : (tensor<6x4xf32>) -> tensor<6x4xf32>
  return %v : tensor<6x4xf32>
}
