// Rows are gathered from windows of 2x2, multiplied, and added to the image that they came from. The views are index
// arithmetic of one kernel: its operands are the image and the weight, its result is the sum in the image's order.
// RUN: smartmem-opt %s --smartmem-form-groups | FileCheck %s

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(a, b, c) -> (a, b, c)>

// CHECK-LABEL: func.func @f
// CHECK-SAME: (%[[X:.*]]: tensor<4x4x3xf32>, %[[W:.*]]: tensor<3x3xf32>)
// CHECK-NEXT: %[[R:.*]] = smartmem.group({{.*}} = %[[X]], {{.*}} = %[[W]]) : (tensor<4x4x3xf32>, tensor<3x3xf32>) -> tensor<4x4x3xf32> {
// CHECK: smartmem.view
// CHECK: arith.mulf
// CHECK: smartmem.view
// CHECK: arith.addf
// CHECK: smartmem.yield
// CHECK: return %[[R]]
func.func @f(%x: tensor<4x4x3xf32>, %w: tensor<3x3xf32>) -> tensor<4x4x3xf32> {
  %zero = arith.constant 0.0 : f32
  %rows = smartmem.view %x at (d0, d1) -> ((d0 floordiv 8) * 2 + (d0 mod 4) floordiv 2, ((d0 floordiv 4) mod 2) * 2 + d0 mod 2, d1)
      : (tensor<4x4x3xf32>) -> tensor<16x3xf32>
  %e = tensor.empty() : tensor<16x3xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<16x3xf32>) -> tensor<16x3xf32>
  %p = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%rows, %w : tensor<16x3xf32>, tensor<3x3xf32>) outs(%start : tensor<16x3xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<16x3xf32>
  %back = smartmem.view %p at (d0, d1, d2) -> ((d0 floordiv 2) * 8 + (d1 floordiv 2) * 4 + (d0 mod 2) * 2 + d1 mod 2, d2)
      : (tensor<16x3xf32>) -> tensor<4x4x3xf32>
  %e3 = tensor.empty() : tensor<4x4x3xf32>
  %sum = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%back, %x : tensor<4x4x3xf32>, tensor<4x4x3xf32>) outs(%e3 : tensor<4x4x3xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x4x3xf32>
  return %sum : tensor<4x4x3xf32>
}
