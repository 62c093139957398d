// A product is read with a border of one row, and alone. It is stored with the border; who reads it alone reads a slice.
// RUN: smartmem-opt %s --smartmem-share-borders | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @f
// CHECK: %[[P:.*]] = linalg.matmul
// CHECK: %[[B:.*]] = smartmem.view %[[P]] pieces [
// CHECK-DAG: [1 to 5, 0 to 6] from 0 at (d0, d1) -> (d0 - 1, d1)
// CHECK-DAG: [0 to 1, 0 to 6] fill 0.0
// CHECK-DAG: [5 to 6, 0 to 6] fill 0.0
// CHECK: : (tensor<4x6xf32>) -> tensor<6x6xf32>
// CHECK: %[[A:.*]] = smartmem.view %[[B]] at (d0, d1) -> (d0 + 1, d1) : (tensor<6x6xf32>) -> tensor<4x6xf32>
// CHECK: linalg.generic {{.*}} ins(%[[A]] :
// CHECK: return {{.*}}, %[[B]]
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>) -> (tensor<4x6xf32>, tensor<6x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %p = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%start : tensor<4x6xf32>) -> tensor<4x6xf32>
  %alone = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %y = arith.negf %a : f32
    linalg.yield %y : f32
  } -> tensor<4x6xf32>
  %padded = smartmem.view %p pieces [
    [0 to 1, 0 to 6] fill 0.0 : f32,
    [1 to 5, 0 to 6] from 0 at (d0, d1) -> (d0 - 1, d1),
    [5 to 6, 0 to 6] fill 0.0 : f32
  ] : (tensor<4x6xf32>) -> tensor<6x6xf32>
  return %alone, %padded : tensor<4x6xf32>, tensor<6x6xf32>
}
