// Lanes of the keys are not adjacent and the keys are no weight: no kernel of ours takes the group, and IREE makes one.
// RUN: smartmem-opt %s --allow-unregistered-dialect --smartmem-lower-groups-to-cpu | FileCheck %s

// CHECK-NOT: smartmem.group
// CHECK-NOT: flow.dispatch
// CHECK: linalg.generic
// CHECK: arith.mulf
func.func @f(%q: tensor<3x5xf32>, %k: tensor<8x5xf32>) -> tensor<3x8xf32> {
  %r = smartmem.group(%a = %q, %b = %k) : (tensor<3x5xf32>, tensor<8x5xf32>) -> tensor<3x8xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<3x8xf32>
    %start = linalg.fill ins(%zero : f32) outs(%e : tensor<3x8xf32>) -> tensor<3x8xf32>
    %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
        iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<3x5xf32>, tensor<8x5xf32>) outs(%start : tensor<3x8xf32>) {
    ^bb0(%i: f32, %j: f32, %o: f32):
      %m = arith.mulf %i, %j : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    } -> tensor<3x8xf32>
    smartmem.yield %p : tensor<3x8xf32>
  }
  return %r : tensor<3x8xf32>
}
