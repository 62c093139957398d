// Attention without a softmax is one kernel: keys and values are laid out on the stack, whatever tensors hold them, and
// their product stays there.
// RUN: smartmem-opt %s --allow-unregistered-dialect '--smartmem-form-groups=linear-attention=true' \
// RUN:   --smartmem-lower-groups-to-cpu='lanes=16 registers=32' | FileCheck %s

#k = affine_map<(b, d, e, n) -> (b, n, d)>
#v = affine_map<(b, d, e, n) -> (b, n, e)>
#s = affine_map<(b, d, e, n) -> (b, d, e)>
#q = affine_map<(b, m, e, d) -> (b, m, d)>
#w = affine_map<(b, m, e, d) -> (b, d, e)>
#o = affine_map<(b, m, e, d) -> (b, m, e)>
#id = affine_map<(b, m, e) -> (b, m, e)>

// CHECK-LABEL: func.func @linear_attention_4x9x7x8x17
// Keys (rows of 16), values and state (of 32), in whole vectors.
// CHECK-DAG: memref.alloca() : memref<112xf32>
// CHECK-DAG: memref.alloca() : memref<224xf32>
// CHECK-DAG: memref.alloca() : memref<256xf32>
// Which tensor holds the values depends on the matrix.
// CHECK: arith.cmpi ult
// CHECK: scf.if
// CHECK-LABEL: func.func @f
// CHECK-NOT: linalg
// CHECK: "flow.dispatch"({{.*}}) {entry_points = [@linear_attention_4x9x7x8x17::@linear_attention_4x9x7x8x17]
// CHECK-NOT: linalg
// CHECK: return
func.func @f(%q: tensor<4x9x8xf32>, %k: tensor<4x7x8xf32>, %v: tensor<7x16xf32>, %u: tensor<3x7x16xf32>) -> tensor<4x9x16xf32> {
  %zero = arith.constant 0.0 : f32
  %rke = tensor.empty() : tensor<4x7x8xf32>
  %rk = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%k : tensor<4x7x8xf32>) outs(%rke : tensor<4x7x8xf32>) {
  ^bb0(%a: f32, %t: f32):
    %r = arith.maximumf %a, %zero : f32
    linalg.yield %r : f32
  } -> tensor<4x7x8xf32>
  %ones = smartmem.view %v, %u pieces [
    [0 to 1, 0 to 7, 0 to 16] from 0 at (d0, d1, d2) -> (d1, d2),
    [0 to 4, 0 to 7, 16 to 17] fill 1.0 : f32,
    [1 to 4, 0 to 7, 0 to 16] from 1 at (d0, d1, d2) -> (d0 - 1, d1, d2)
  ] : (tensor<7x16xf32>, tensor<3x7x16xf32>) -> tensor<4x7x17xf32>
  %statee = tensor.empty() : tensor<4x8x17xf32>
  %statez = linalg.fill ins(%zero : f32) outs(%statee : tensor<4x8x17xf32>) -> tensor<4x8x17xf32>
  %state = linalg.generic {indexing_maps = [#k, #v, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%rk, %ones : tensor<4x7x8xf32>, tensor<4x7x17xf32>) outs(%statez : tensor<4x8x17xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %t, %p : f32
    linalg.yield %r : f32
  } -> tensor<4x8x17xf32>
  %rqe = tensor.empty() : tensor<4x9x8xf32>
  %rq = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%q : tensor<4x9x8xf32>) outs(%rqe : tensor<4x9x8xf32>) {
  ^bb0(%a: f32, %t: f32):
    %r = arith.maximumf %a, %zero : f32
    linalg.yield %r : f32
  } -> tensor<4x9x8xf32>
  %oute = tensor.empty() : tensor<4x9x17xf32>
  %outz = linalg.fill ins(%zero : f32) outs(%oute : tensor<4x9x17xf32>) -> tensor<4x9x17xf32>
  %out = linalg.generic {indexing_maps = [#q, #w, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%rq, %state : tensor<4x9x8xf32>, tensor<4x8x17xf32>) outs(%outz : tensor<4x9x17xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %t, %p : f32
    linalg.yield %r : f32
  } -> tensor<4x9x17xf32>
  %values = smartmem.view %out at (d0, d1, d2) -> (d0, d1, d2) : (tensor<4x9x17xf32>) -> tensor<4x9x16xf32>
  %sums = smartmem.view %out at (d0, d1, d2) -> (d0, d1, 16) : (tensor<4x9x17xf32>) -> tensor<4x9x16xf32>
  %re = tensor.empty() : tensor<4x9x16xf32>
  %result = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%values, %sums : tensor<4x9x16xf32>, tensor<4x9x16xf32>) outs(%re : tensor<4x9x16xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<4x9x16xf32>
  return %result : tensor<4x9x16xf32>
}
