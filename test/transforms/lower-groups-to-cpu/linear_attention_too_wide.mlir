// Rows of 2000 values leave no room on the stack beside the state: each product gets a kernel of its own.
// RUN: smartmem-opt %s --allow-unregistered-dialect '--smartmem-form-groups=linear-attention=true' \
// RUN:   --smartmem-lower-groups-to-cpu='lanes=16 registers=32' | FileCheck %s

#k = affine_map<(b, d, e, n) -> (b, n, d)>
#v = affine_map<(b, d, e, n) -> (b, n, e)>
#s = affine_map<(b, d, e, n) -> (b, d, e)>
#q = affine_map<(b, m, e, d) -> (b, m, d)>
#w = affine_map<(b, m, e, d) -> (b, d, e)>
#o = affine_map<(b, m, e, d) -> (b, m, e)>

// CHECK-NOT: linear_attention
// CHECK-LABEL: func.func @f
// CHECK: "flow.dispatch"({{.*}}@contraction
// CHECK: "flow.dispatch"({{.*}}@contraction
func.func @f(%q: tensor<4x9x4xf32>, %k: tensor<4x7x4xf32>, %v: tensor<4x7x2000xf32>) -> tensor<4x9x2000xf32> {
  %zero = arith.constant 0.0 : f32
  %statee = tensor.empty() : tensor<4x4x2000xf32>
  %statez = linalg.fill ins(%zero : f32) outs(%statee : tensor<4x4x2000xf32>) -> tensor<4x4x2000xf32>
  %state = linalg.generic {indexing_maps = [#k, #v, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%k, %v : tensor<4x7x4xf32>, tensor<4x7x2000xf32>) outs(%statez : tensor<4x4x2000xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %t, %p : f32
    linalg.yield %r : f32
  } -> tensor<4x4x2000xf32>
  %oute = tensor.empty() : tensor<4x9x2000xf32>
  %outz = linalg.fill ins(%zero : f32) outs(%oute : tensor<4x9x2000xf32>) -> tensor<4x9x2000xf32>
  %out = linalg.generic {indexing_maps = [#q, #w, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %state : tensor<4x9x4xf32>, tensor<4x4x2000xf32>) outs(%outz : tensor<4x9x2000xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %t, %p : f32
    linalg.yield %r : f32
  } -> tensor<4x9x2000xf32>
  return %out : tensor<4x9x2000xf32>
}
