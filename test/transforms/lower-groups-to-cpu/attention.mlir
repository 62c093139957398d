// Attention is one kernel: scores, softmax and result of a (batch, head) never leave the stack.
// RUN: smartmem-opt %s --allow-unregistered-dialect --smartmem-form-groups \
// RUN:   --smartmem-lower-groups-to-cpu='lanes=16 registers=32' | FileCheck %s

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#s = affine_map<(b, m, n, d) -> (b, m, n)>
#w = affine_map<(b, m, e, n) -> (b, m, n)>
#v = affine_map<(b, m, e, n) -> (b, n, e)>
#o = affine_map<(b, m, e, n) -> (b, m, e)>
// One workgroup: both matrices together are little work.
// CHECK: "stream.executable.export"
// CHECK-NEXT: %[[X:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[Y:.*]] = arith.constant 1 : index
// CHECK: "stream.return"(%[[X]], %[[Y]],
// CHECK-LABEL: func.func @attention_2x5x7x4x6
// Scores, and K transposed, each row 8 floats apart.
// CHECK-DAG: memref.alloca() : memref<40xf32>
// CHECK-DAG: memref.alloca() : memref<32xf32>
// CHECK-LABEL: func.func @f
// CHECK-NOT: linalg
// CHECK: "flow.dispatch"(%arg0, %arg1, %arg2) {entry_points = [@attention_2x5x7x4x6::@attention_2x5x7x4x6]
func.func @f(%q: tensor<2x5x4xf32>, %k: tensor<2x7x4xf32>, %v: tensor<2x7x6xf32>) -> tensor<2x5x6xf32> {
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
  return %0 : tensor<2x5x6xf32>
}
