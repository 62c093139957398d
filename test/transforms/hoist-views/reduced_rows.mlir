// A sum over the rows of a rolled matrix: the view is of the matrix, in front of the sum, and stays there.
// RUN: smartmem-opt %s --smartmem-hoist-views | FileCheck %s

#in = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @f
// CHECK: %[[V:.*]] = smartmem.view %arg0 at (d0, d1) -> ((d0 + 1) mod 6, d1)
// CHECK-NEXT: linalg.generic {{.*}} ins(%[[V]] : tensor<6x4xf32>)
func.func @f(%x: tensor<6x4xf32>, %start: tensor<4xf32>) -> tensor<4xf32> {
  %v = smartmem.view %x at (d0, d1) -> ((d0 + 1) mod 6, d1) : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %0 = linalg.generic {indexing_maps = [#in, #column], iterator_types = ["reduction", "parallel"]}
      ins(%v : tensor<6x4xf32>) outs(%start : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
