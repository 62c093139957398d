// Views that are left alone: in front of a contraction, and in memory order.
// RUN: smartmem-opt %s --smartmem-absorb-views | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @contraction
func.func @contraction(%x: tensor<6x4xf32>, %w: tensor<4x5xf32>, %c: tensor<6x5xf32>) -> tensor<6x5xf32> {
  // CHECK: smartmem.view
  %v = smartmem.view %x at (d0, d1) -> ((d0 + 1) mod 6, d1) : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %0 = linalg.matmul ins(%v, %w : tensor<6x4xf32>, tensor<4x5xf32>) outs(%c : tensor<6x5xf32>) -> tensor<6x5xf32>
  return %0 : tensor<6x5xf32>
}

// CHECK-LABEL: func.func @slice
func.func @slice(%x: tensor<6x4xf32>, %e: tensor<3x2xf32>) -> tensor<3x2xf32> {
  // CHECK: smartmem.view
  %v = smartmem.view %x at (d0, d1) -> (d0 * 2, d1 + 2) : (tensor<6x4xf32>) -> tensor<3x2xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%v : tensor<3x2xf32>) outs(%e : tensor<3x2xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = math.exp %a : f32
    linalg.yield %n : f32
  } -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}
