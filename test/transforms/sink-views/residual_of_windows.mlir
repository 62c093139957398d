// Windows of an image, projected, put back into the image and added to it: the addition follows the projection in the
// order of the windows and reads the image through the view; the sum goes back through the other.
// RUN: smartmem-opt %s --smartmem-sink-views | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-LABEL: func.func @f
// CHECK: %[[P:.*]] = linalg.matmul
// CHECK: %[[X:.*]] = smartmem.view %arg1 at (d0, d1) -> ((d0 floordiv 8) * 2 + (d0 floordiv 2) mod 2, {{.*}}, d1)
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[P]] : tensor<16x3xf32>, tensor<16x3xf32>)
// CHECK: %[[B:.*]] = smartmem.view %[[S]] at (d0, d1, d2) -> {{.*}} : (tensor<16x3xf32>) -> tensor<4x4x3xf32>
// CHECK: math.exp
// CHECK: return
func.func @f(%a: tensor<16x5xf32>, %x: tensor<4x4x3xf32>, %w: tensor<5x3xf32>) -> tensor<4x4x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<16x3xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e0 : tensor<16x3xf32>) -> tensor<16x3xf32>
  %p = linalg.matmul ins(%a, %w : tensor<16x5xf32>, tensor<5x3xf32>) outs(%start : tensor<16x3xf32>) -> tensor<16x3xf32>
  %back = smartmem.view %p at (d0, d1, d2)
      -> ((d0 floordiv 2) * 8 + (d1 floordiv 2) * 4 + (d0 mod 2) * 2 + d1 mod 2, d2)
      : (tensor<16x3xf32>) -> tensor<4x4x3xf32>
  %e1 = tensor.empty() : tensor<4x4x3xf32>
  %s = linalg.generic {indexing_maps = [#id3, #id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %back : tensor<4x4x3xf32>, tensor<4x4x3xf32>) outs(%e1 : tensor<4x4x3xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %t = arith.addf %l, %r : f32
    linalg.yield %t : f32
  } -> tensor<4x4x3xf32>
  %0 = linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s : tensor<4x4x3xf32>) outs(%e1 : tensor<4x4x3xf32>) {
  ^bb0(%l: f32, %o: f32):
    %t = math.exp %l : f32
    linalg.yield %t : f32
  } -> tensor<4x4x3xf32>
  return %0 : tensor<4x4x3xf32>
}
