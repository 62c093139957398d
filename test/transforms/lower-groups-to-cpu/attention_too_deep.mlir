// Rows of 4096 columns leave no room on the stack for a block of keys: the group is dissolved. Each product
// gets a kernel of its own; the keys have no adjacent lanes and are laid out anew before it. IREE computes the softmax.
// RUN: smartmem-opt %s --allow-unregistered-dialect --smartmem-form-groups \
// RUN:   --smartmem-lower-groups-to-cpu='lanes=16 registers=32' | FileCheck %s

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#s = affine_map<(b, m, n, d) -> (b, m, n)>
#w = affine_map<(b, m, e, n) -> (b, m, n)>
#v = affine_map<(b, m, e, n) -> (b, n, e)>
#o = affine_map<(b, m, e, n) -> (b, m, e)>
// CHECK-NOT: attention
// CHECK-LABEL: func.func @f
// CHECK: %[[K:.*]] = smartmem.view %arg1 at (d0, d1, d2) -> (0, d2, d1)
// CHECK: "flow.dispatch"(%arg0, %[[K]]) {{.*}}@contraction
// CHECK: linalg.softmax
// CHECK: "flow.dispatch"({{.*}}@contraction
func.func @f(%q: tensor<1x20x4096xf32>, %k: tensor<1x32x4096xf32>, %v: tensor<1x32x64xf32>) -> tensor<1x20x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<1x20x32xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x20x32xf32>) -> tensor<1x20x32xf32>
  %scores = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<1x20x4096xf32>, tensor<1x32x4096xf32>) outs(%z1 : tensor<1x20x32xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %t, %p : f32
    linalg.yield %r : f32
  } -> tensor<1x20x32xf32>
  %weights = linalg.softmax dimension(2) ins(%scores : tensor<1x20x32xf32>) outs(%e1 : tensor<1x20x32xf32>) -> tensor<1x20x32xf32>
  %e2 = tensor.empty() : tensor<1x20x64xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<1x20x64xf32>) -> tensor<1x20x64xf32>
  %0 = linalg.generic {indexing_maps = [#w, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%weights, %v : tensor<1x20x32xf32>, tensor<1x32x64xf32>) outs(%z2 : tensor<1x20x64xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %t, %p : f32
    linalg.yield %r : f32
  } -> tensor<1x20x64xf32>
  return %0 : tensor<1x20x64xf32>
}
