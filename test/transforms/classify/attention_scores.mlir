// A transposition is defined by its input's layout; the product may read its operands and store its result in any order
// and wants the summed axis of each together; an elementwise operation takes elements as they come.
// RUN: smartmem-opt %s --smartmem-classify | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %init: tensor<4x6xf32>, %mask: tensor<6xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<8x6xf32>
  // CHECK: linalg.transpose {{.*}}smartmem.op_class = #smartmem.op_class<ild_fixed>{{.*}}reads = ["fixed"],{{.*}}smartmem.write = "fixed"
  %t = linalg.transpose ins(%k : tensor<6x8xf32>) outs(%e : tensor<8x6xf32>) permutation = [1, 0]
  // CHECK: linalg.matmul {smartmem.op_class = #smartmem.op_class<ild_variable>
  // CHECK-SAME: smartmem.reads = ["any", "any"], smartmem.reduced_axes = [array<i64: 1>, array<i64: 0>], smartmem.write = "any"
  %s = linalg.matmul ins(%q, %t : tensor<4x8xf32>, tensor<8x6xf32>) outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32>
  // CHECK: linalg.generic
  // CHECK-SAME: smartmem.op_class = #smartmem.op_class<ili_variable>
  // CHECK-SAME: smartmem.reads = ["joint", "joint"], smartmem.reduced_axes = [array<i64>, array<i64>], smartmem.write = "any"
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s, %mask : tensor<4x6xf32>, tensor<6xf32>) outs(%init : tensor<4x6xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %v = arith.addf %a, %m : f32
    linalg.yield %v : f32
  } -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
