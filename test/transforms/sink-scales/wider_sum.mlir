// Queries of f16 whose products are summed in f32: the sum is scaled in f32, by the same number. The other way around, a sum
// in f16 of what was scaled in f32, stays.
// RUN: smartmem-opt %s --smartmem-sink-scales | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#all = affine_map<(d0, d1) -> ()>
#lhs = affine_map<(d0, d1, d2) -> (d0, d2)>
#rhs = affine_map<(d0, d1, d2) -> (d2, d1)>
#sum = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @wider
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<4x8xf16>, tensor<8x6xf16>)
// CHECK: linalg.generic {{.*}} ins(%[[P]], %arg2 : tensor<4x6xf32>, tensor<f16>)
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[S:.*]]: f16, %{{.*}}: f32):
// CHECK-NEXT: %[[W:.*]] = arith.extf %[[S]] : f16 to f32
// CHECK-NEXT: arith.mulf %[[A]], %[[W]] : f32
func.func @wider(%q: tensor<4x8xf16>, %k: tensor<8x6xf16>, %s: tensor<f16>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x8xf16>
  %scaled = linalg.generic {indexing_maps = [#id, #all, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q, %s : tensor<4x8xf16>, tensor<f16>) outs(%e : tensor<4x8xf16>) {
  ^bb0(%a: f16, %b: f16, %o: f16):
    %m = arith.mulf %a, %b : f16
    linalg.yield %m : f16
  } -> tensor<4x8xf16>
  %zero = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<4x6xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = linalg.generic {indexing_maps = [#lhs, #rhs, #sum], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%scaled, %k : tensor<4x8xf16>, tensor<8x6xf16>) outs(%start : tensor<4x6xf32>) {
  ^bb0(%a: f16, %b: f16, %o: f32):
    %aw = arith.extf %a : f16 to f32
    %bw = arith.extf %b : f16 to f32
    %p = arith.mulf %aw, %bw : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @narrower
// CHECK: %[[SCALED:.*]] = linalg.generic {{.*}} ins(%arg0, %arg2
// CHECK: linalg.generic {{.*}} ins(%[[SCALED]], %arg1
// CHECK-NOT: linalg.generic
func.func @narrower(%q: tensor<4x8xf32>, %k: tensor<8x6xf32>, %s: tensor<f32>) -> tensor<4x6xf16> {
  %e = tensor.empty() : tensor<4x8xf32>
  %scaled = linalg.generic {indexing_maps = [#id, #all, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q, %s : tensor<4x8xf32>, tensor<f32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<4x8xf32>
  %zero = arith.constant 0.0 : f16
  %e2 = tensor.empty() : tensor<4x6xf16>
  %start = linalg.fill ins(%zero : f16) outs(%e2 : tensor<4x6xf16>) -> tensor<4x6xf16>
  %0 = linalg.generic {indexing_maps = [#lhs, #rhs, #sum], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%scaled, %k : tensor<4x8xf32>, tensor<8x6xf32>) outs(%start : tensor<4x6xf16>) {
  ^bb0(%a: f32, %b: f32, %o: f16):
    %an = arith.truncf %a : f32 to f16
    %bn = arith.truncf %b : f32 to f16
    %p = arith.mulf %an, %bn : f16
    %t = arith.addf %o, %p : f16
    linalg.yield %t : f16
  } -> tensor<4x6xf16>
  return %0 : tensor<4x6xf16>
}
