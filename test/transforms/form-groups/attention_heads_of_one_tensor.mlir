// Q, K and V are columns of one tensor and the result is written with the heads side by side: one group, which reads
// the tensor that the views read, and computes the bias and the division by the sum behind the second product.
// RUN: smartmem-opt %s --smartmem-form-groups | FileCheck %s

#q = affine_map<(h, m, n, d) -> (m, h, d)>
#k = affine_map<(h, m, n, d) -> (n, h, d)>
#s = affine_map<(h, m, n, d) -> (h, m, n)>
#w = affine_map<(m, h, e, n) -> (h, m, n)>
#v = affine_map<(m, h, e, n) -> (n, h, e)>
#o = affine_map<(m, h, e, n) -> (m, h, e)>
#id = affine_map<(h, m, n) -> (h, m, n)>
#row = affine_map<(h, m, n) -> (h, m)>
#id2 = affine_map<(m, c) -> (m, c)>
// CHECK-LABEL: func.func @f
// CHECK-NEXT: %[[G:.*]] = smartmem.group(%arg{{[0-9]+}} = %arg0, %arg{{[0-9]+}} = %arg1) : (tensor<5x24xf32>, tensor<2x5x5xf32>) -> tensor<5x8xf32> {
// CHECK: smartmem.yield
// CHECK-NEXT: }
// CHECK-NEXT: return %[[G]]
func.func @f(%qkv: tensor<5x24xf32>, %bias: tensor<2x5x5xf32>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %q = smartmem.view %qkv at (d0, d1, d2) -> (d0, d1 * 4 + d2) : (tensor<5x24xf32>) -> tensor<5x2x4xf32>
  %k = smartmem.view %qkv at (d0, d1, d2) -> (d0, d1 * 4 + d2 + 8) : (tensor<5x24xf32>) -> tensor<5x2x4xf32>
  %v = smartmem.view %qkv at (d0, d1, d2) -> (d0, d1 * 4 + d2 + 16) : (tensor<5x24xf32>) -> tensor<5x2x4xf32>
  %e1 = tensor.empty() : tensor<2x5x5xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %products = linalg.generic
      {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<5x2x4xf32>, tensor<5x2x4xf32>) outs(%z1 : tensor<2x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %t, %p : f32
    linalg.yield %r : f32
  } -> tensor<2x5x5xf32>
  %scores = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%products, %bias : tensor<2x5x5xf32>, tensor<2x5x5xf32>) outs(%e1 : tensor<2x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<2x5x5xf32>
  %e2 = tensor.empty() : tensor<2x5xf32>
  %l = linalg.fill ins(%lowest : f32) outs(%e2 : tensor<2x5xf32>) -> tensor<2x5xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%scores : tensor<2x5x5xf32>) outs(%l : tensor<2x5xf32>) {
  ^bb0(%a: f32, %t: f32):
    %r = arith.maximumf %a, %t : f32
    linalg.yield %r : f32
  } -> tensor<2x5xf32>
  %weights = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scores, %max : tensor<2x5x5xf32>, tensor<2x5xf32>) outs(%e1 : tensor<2x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32):
    %s = arith.subf %a, %b : f32
    %r = math.exp %s : f32
    linalg.yield %r : f32
  } -> tensor<2x5x5xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<2x5xf32>) -> tensor<2x5xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%weights : tensor<2x5x5xf32>) outs(%z2 : tensor<2x5xf32>) {
  ^bb0(%a: f32, %t: f32):
    %r = arith.addf %a, %t : f32
    linalg.yield %r : f32
  } -> tensor<2x5xf32>
  %e3 = tensor.empty() : tensor<5x2x4xf32>
  %z3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<5x2x4xf32>) -> tensor<5x2x4xf32>
  %heads = linalg.generic
      {indexing_maps = [#w, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%weights, %v : tensor<2x5x5xf32>, tensor<5x2x4xf32>) outs(%z3 : tensor<5x2x4xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %t, %p : f32
    linalg.yield %r : f32
  } -> tensor<5x2x4xf32>
  %rows = smartmem.view %heads at (d0, d1) -> (d0, d1 floordiv 4, d1 mod 4) : (tensor<5x2x4xf32>) -> tensor<5x8xf32>
  %sums = smartmem.view %sum at (d0, d1) -> (d1 floordiv 4, d0) : (tensor<2x5xf32>) -> tensor<5x8xf32>
  %e4 = tensor.empty() : tensor<5x8xf32>
  %0 = linalg.generic {indexing_maps = [#id2, #id2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%rows, %sums : tensor<5x8xf32>, tensor<5x8xf32>) outs(%e4 : tensor<5x8xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<5x8xf32>
  return %0 : tensor<5x8xf32>
}
