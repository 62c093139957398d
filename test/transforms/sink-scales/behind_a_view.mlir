// The scale is in front of a transpose; the view then reads what was scaled, and the rows' scale follows the rows.
// RUN: smartmem-opt %s --smartmem-sink-scales | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK: %[[T:.*]] = smartmem.view %arg0 at (d0, d1) -> (d1, d0)
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%[[T]], %arg2
// CHECK: linalg.generic {indexing_maps = [{{.*}}, #[[ROW]], {{.*}}]{{.*}} ins(%[[P]], %arg1 : {{.*}}tensor<4xf32>)
func.func @f(%q: tensor<8x4xf32>, %s: tensor<4xf32>, %k: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %scaled = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q, %s : tensor<8x4xf32>, tensor<4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<8x4xf32>
  %turned = smartmem.view %scaled at (d0, d1) -> (d1, d0) : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %zero = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<4x6xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = linalg.matmul ins(%turned, %k : tensor<4x8xf32>, tensor<8x6xf32>) outs(%start : tensor<4x6xf32>)
      -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
