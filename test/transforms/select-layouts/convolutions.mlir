// Channels first, as importers write it. The first convolution writes its channels contiguously, the padding and the
// activation follow, and the second reads them so; the function's argument and result keep the caller's order.
// RUN: smartmem-opt %s --smartmem-select-layouts=layouts=paper | FileCheck %s

#image = affine_map<(f, h, w, c, r, s) -> (c, h + r, w + s)>
#weight = affine_map<(f, h, w, c, r, s) -> (f, c, r, s)>
#out = affine_map<(f, h, w, c, r, s) -> (f, h, w)>
#id = affine_map<(a, b, c) -> (a, b, c)>

// CHECK-LABEL: func.func @f
// CHECK: %[[FIRST:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<3x6x7xf32>, tensor<8x3x3x3xf32>) outs({{.*}} : tensor<4x5x8xf32>)
// CHECK: %[[ACTIVE:.*]] = linalg.generic {{.*}} ins(%[[FIRST]] : tensor<4x5x8xf32>) outs({{.*}} : tensor<4x5x8xf32>)
// CHECK: arith.negf
// CHECK: %[[PADDED:.*]] = smartmem.view %[[ACTIVE]] pieces
// CHECK: [1 to 5, 1 to 6, 0 to 8] from 0 at (d0, d1, d2) -> (d0 - 1, d1 - 1, d2)
// CHECK: : (tensor<4x5x8xf32>) -> tensor<6x7x8xf32>
// CHECK: %[[SECOND:.*]] = linalg.generic {{.*}} ins(%[[PADDED]], %arg2 : tensor<6x7x8xf32>, tensor<4x8x3x3xf32>) outs({{.*}} : tensor<4x5x4xf32>)
// CHECK: %[[RESULT:.*]] = smartmem.view %[[SECOND]] at (d0, d1, d2) -> (d1, d2, d0)
// CHECK: return %[[RESULT]] : tensor<4x4x5xf32>
func.func @f(%x: tensor<3x6x7xf32>, %w1: tensor<8x3x3x3xf32>, %w2: tensor<4x8x3x3xf32>) -> tensor<4x4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<8x4x5xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8x4x5xf32>) -> tensor<8x4x5xf32>
  %c1 = linalg.generic {indexing_maps = [#image, #weight, #out],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w1 : tensor<3x6x7xf32>, tensor<8x3x3x3xf32>) outs(%f1 : tensor<8x4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x4x5xf32>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%c1 : tensor<8x4x5xf32>) outs(%e1 : tensor<8x4x5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %y = arith.negf %a : f32
    linalg.yield %y : f32
  } -> tensor<8x4x5xf32>
  %p = smartmem.view %n pieces [
    [0 to 8, 0 to 1, 0 to 7] fill 0.0 : f32,
    [0 to 8, 1 to 5, 0 to 1] fill 0.0 : f32,
    [0 to 8, 1 to 5, 1 to 6] from 0 at (d0, d1, d2) -> (d0, d1 - 1, d2 - 1),
    [0 to 8, 1 to 5, 6 to 7] fill 0.0 : f32,
    [0 to 8, 5 to 6, 0 to 7] fill 0.0 : f32
  ] : (tensor<8x4x5xf32>) -> tensor<8x6x7xf32>
  %e2 = tensor.empty() : tensor<4x4x5xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x4x5xf32>) -> tensor<4x4x5xf32>
  %c2 = linalg.generic {indexing_maps = [#image, #weight, #out],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%p, %w2 : tensor<8x6x7xf32>, tensor<4x8x3x3xf32>) outs(%f2 : tensor<4x4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x4x5xf32>
  return %c2 : tensor<4x4x5xf32>
}
