// Keys of a tensor that something else reads with a border around it are read inside that border: the padding is not
// undone, so that what computes the tensor can write it with its border.
// RUN: smartmem-opt %s '--smartmem-form-groups=linear-attention=true' | FileCheck %s

#k = affine_map<(b, d, e, n) -> (b, n, d)>
#v = affine_map<(b, d, e, n) -> (b, n, e)>
#s = affine_map<(b, d, e, n) -> (b, d, e)>
#q = affine_map<(b, m, e, d) -> (b, m, d)>
#w = affine_map<(b, m, e, d) -> (b, d, e)>
#o = affine_map<(b, m, e, d) -> (b, m, e)>
#id = affine_map<(b, m, e) -> (b, m, e)>

// CHECK-LABEL: func.func @f
// CHECK: %[[PADDED:.*]] = smartmem.view %arg0 pieces
// CHECK: %[[G:.*]] = smartmem.group(%[[K:.*]] = %[[PADDED]], {{.*}}) : (tensor<9x32xf32>, tensor<4x7x16xf32>, tensor<4x9x8xf32>)
// CHECK: smartmem.view %[[K]] at (d0, d1, d2) -> (d1 + 1, d0 * 8 + d2)
// CHECK: return %[[G]], %[[PADDED]]
func.func @f(%x: tensor<7x32xf32>, %v: tensor<4x7x16xf32>, %q: tensor<4x9x8xf32>) -> (tensor<4x9x16xf32>, tensor<9x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %image = smartmem.view %x pieces [
    [0 to 1, 0 to 32] fill 0.0 : f32,
    [1 to 8, 0 to 32] from 0 at (d0, d1) -> (d0 - 1, d1),
    [8 to 9, 0 to 32] fill 0.0 : f32
  ] : (tensor<7x32xf32>) -> tensor<9x32xf32>
  %keys = smartmem.view %image at (d0, d1, d2) -> (d1 + 1, d0 * 8 + d2) : (tensor<9x32xf32>) -> tensor<4x7x8xf32>
  %statee = tensor.empty() : tensor<4x8x16xf32>
  %statez = linalg.fill ins(%zero : f32) outs(%statee : tensor<4x8x16xf32>) -> tensor<4x8x16xf32>
  %state = linalg.generic {indexing_maps = [#k, #v, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%keys, %v : tensor<4x7x8xf32>, tensor<4x7x16xf32>) outs(%statez : tensor<4x8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %t, %p : f32
    linalg.yield %r : f32
  } -> tensor<4x8x16xf32>
  %oute = tensor.empty() : tensor<4x9x16xf32>
  %outz = linalg.fill ins(%zero : f32) outs(%oute : tensor<4x9x16xf32>) -> tensor<4x9x16xf32>
  %out = linalg.generic {indexing_maps = [#q, #w, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %state : tensor<4x9x8xf32>, tensor<4x8x16xf32>) outs(%outz : tensor<4x9x16xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %t, %p : f32
    linalg.yield %r : f32
  } -> tensor<4x9x16xf32>
  return %out, %image : tensor<4x9x16xf32>, tensor<9x32xf32>
}
