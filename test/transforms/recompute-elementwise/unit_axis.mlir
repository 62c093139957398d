// The input lacks the axis of extent 1 that the sum runs over: the sum reads the tensor that has it.
// RUN: smartmem-opt %s --smartmem-recompute-elementwise | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK: %[[N:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<4xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[N]] : tensor<4x1xf32>)
func.func @f(%x: tensor<4xf32>, %start: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4x1xf32>
  %n = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.negf %a : f32
    linalg.yield %s : f32
  } -> tensor<4x1xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%n : tensor<4x1xf32>) outs(%start : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
