// The same permutation in front of an addition is an index computed at each read, which fuses with it.
// RUN: smartmem-opt %s --smartmem-materialize-views | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @f
// CHECK: %[[G:.*]] = linalg.generic
// CHECK: %[[J:.*]] = linalg.index 1
// CHECK: tensor.extract %arg0[%{{.*}}, %{{.*}}, %[[J]]] : tensor<2x3x4xf32>
// CHECK: linalg.generic {{.*}} ins(%[[G]] : tensor<6x4xf32>)
func.func @f(%x: tensor<2x3x4xf32>) -> tensor<6x4xf32> {
  %v = smartmem.view %x at (d0, d1) -> (d0 mod 2, d0 floordiv 2, d1) : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %e = tensor.empty() : tensor<6x4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%v : tensor<6x4xf32>) outs(%e : tensor<6x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = math.exp %a : f32
    linalg.yield %n : f32
  } -> tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}
