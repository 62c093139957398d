// The rows of a product are the pixels of an image. A convolution reads the image with a border; what reads the rows
// themselves reads them out of the image with its border.
// RUN: smartmem-opt %s --smartmem-share-borders | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @f
// CHECK: %[[P:.*]] = linalg.matmul
// CHECK: %[[B:.*]] = smartmem.view %[[P]] pieces [
// CHECK-DAG: [1 to 3, 1 to 4, 0 to 4] from 0 at (d0, d1, d2) -> (d0 * 3 + d1 - 4, d2)
// CHECK: : (tensor<6x4xf32>) -> tensor<4x5x4xf32>
// CHECK: %[[A:.*]] = smartmem.view %[[B]] at (d0, d1, d2) -> (d0 + 1, d1 + 1, d2) : (tensor<4x5x4xf32>) -> tensor<2x3x4xf32>
// CHECK: %[[R:.*]] = smartmem.view %[[A]] at (d0, d1) -> (d0 floordiv 3, d0 mod 3, d1) : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
// CHECK: %[[S:.*]] = smartmem.view %[[B]] at (d0, d1, d2) -> (d0, d1, d2 + 2) : (tensor<4x5x4xf32>) -> tensor<4x5x2xf32>
// CHECK: linalg.generic {{.*}} ins(%[[R]] :
// CHECK: return {{.*}}, %[[S]]
func.func @f(%x: tensor<6x8xf32>, %w: tensor<8x4xf32>) -> (tensor<6x4xf32>, tensor<4x5x2xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<6x4xf32>) -> tensor<6x4xf32>
  %p = linalg.matmul ins(%x, %w : tensor<6x8xf32>, tensor<8x4xf32>) outs(%start : tensor<6x4xf32>) -> tensor<6x4xf32>
  %alone = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<6x4xf32>) outs(%e : tensor<6x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %y = arith.negf %a : f32
    linalg.yield %y : f32
  } -> tensor<6x4xf32>
  %padded = smartmem.view %p pieces [
    [0 to 1, 0 to 5, 0 to 2] fill 0.0 : f32,
    [1 to 3, 0 to 1, 0 to 2] fill 0.0 : f32,
    [1 to 3, 1 to 4, 0 to 2] from 0 at (d0, d1, d2) -> (d0 * 3 + d1 - 4, d2 + 2),
    [1 to 3, 4 to 5, 0 to 2] fill 0.0 : f32,
    [3 to 4, 0 to 5, 0 to 2] fill 0.0 : f32
  ] : (tensor<6x4xf32>) -> tensor<4x5x2xf32>
  return %alone, %padded : tensor<6x4xf32>, tensor<4x5x2xf32>
}
