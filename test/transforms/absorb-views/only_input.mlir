// A sum whose only input is absorbed: a tensor that nobody reads says how long the summed dimension is.
// RUN: smartmem-opt %s --smartmem-absorb-views | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[SUM:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @f
// CHECK: %[[B:.*]] = tensor.empty() : tensor<4xf32>
// CHECK: linalg.generic {indexing_maps = [#[[SUM]], #[[ROW]]], iterator_types = ["parallel", "reduction"]}
// CHECK-SAME: ins(%[[B]] : tensor<4xf32>) outs(%arg1 : tensor<6xf32>)
// CHECK: tensor.extract %arg0
func.func @f(%x: tensor<6x4xf32>, %start: tensor<6xf32>) -> tensor<6xf32> {
  %v = smartmem.view %x at (d0, d1) -> ((d0 + 1) mod 6, d1) : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%v : tensor<6x4xf32>) outs(%start : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  return %0 : tensor<6xf32>
}
