// Weights that something else reads as well must be computed: no attention, but a group for each product.
// RUN: smartmem-opt %s --smartmem-form-groups | FileCheck %s

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#s = affine_map<(b, m, n, d) -> (b, m, n)>
#w = affine_map<(b, m, e, n) -> (b, m, n)>
#v = affine_map<(b, m, e, n) -> (b, n, e)>
#o = affine_map<(b, m, e, n) -> (b, m, e)>
// CHECK-LABEL: func.func @f
// CHECK: %[[S:.*]] = smartmem.group(%arg{{[0-9]+}} = %arg0, %arg{{[0-9]+}} = %arg1)
// CHECK: %[[W:.*]] = linalg.softmax dimension(2) ins(%[[S]]
// CHECK: %[[O:.*]] = smartmem.group(%arg{{[0-9]+}} = %[[W]], %arg{{[0-9]+}} = %arg2)
// CHECK: return %[[O]], %[[W]]
func.func @f(%q: tensor<2x5x4xf32>, %k: tensor<2x7x4xf32>, %v: tensor<2x7x6xf32>) -> (tensor<2x5x6xf32>, tensor<2x5x7xf32>) {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<2x5x7xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %scores = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x5x4xf32>, tensor<2x7x4xf32>) outs(%z1 : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %t, %p : f32
    linalg.yield %r : f32
  } -> tensor<2x5x7xf32>
  %weights = linalg.softmax dimension(2) ins(%scores : tensor<2x5x7xf32>) outs(%e1 : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %e2 = tensor.empty() : tensor<2x5x6xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  %0 = linalg.generic {indexing_maps = [#w, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%weights, %v : tensor<2x5x7xf32>, tensor<2x7x6xf32>) outs(%z2 : tensor<2x5x6xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %t, %p : f32
    linalg.yield %r : f32
  } -> tensor<2x5x6xf32>
  return %0, %weights : tensor<2x5x6xf32>, tensor<2x5x7xf32>
}
