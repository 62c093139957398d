// An axis of extent 1 that is read at 0 is repeated; an operand that is not yielded does not count.
// RUN: smartmem-opt %s --smartmem-raise-views | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#first = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-LABEL: func.func @f
func.func @f(%x: tensor<3x1xf32>, %y: tensor<3x4xf32>) -> tensor<3x4xf32> {
  // CHECK: smartmem.view %arg0 at (d0, d1) -> (d0, 0) : (tensor<3x1xf32>) -> tensor<3x4xf32>
  %e = tensor.empty() : tensor<3x4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #first, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y, %x : tensor<3x4xf32>, tensor<3x1xf32>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%b: f32, %a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
