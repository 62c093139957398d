// RUN: smartmem-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @identity
// CHECK-SAME: %[[A:.*]]: tensor<4x8xf32>
func.func @identity(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK-NEXT: return %[[A]]
  %0 = smartmem.view %a at (d0, d1) -> (d0, d1) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// A prefix is not the identity, though its map is.
// CHECK-LABEL: func.func @prefix
func.func @prefix(%a: tensor<8xf32>) -> tensor<4xf32> {
  // CHECK: smartmem.view
  %0 = smartmem.view %a at (d0) -> (d0) : (tensor<8xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Nor is a view into another layout: bytes must move.
// CHECK-LABEL: func.func @other_layout
func.func @other_layout(%a: tensor<4x8xf32>) -> tensor<4x8xf32, #smartmem.layout<(d0, d1) -> (d1, d0), buffer>> {
  // CHECK: smartmem.view
  %0 = smartmem.view %a at (d0, d1) -> (d0, d1) : (tensor<4x8xf32>) -> tensor<4x8xf32, #smartmem.layout<(d0, d1) -> (d1, d0), buffer>>
  return %0 : tensor<4x8xf32, #smartmem.layout<(d0, d1) -> (d1, d0), buffer>>
}

// CHECK-LABEL: func.func @unused_source
// CHECK-SAME: %{{.*}}: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>
func.func @unused_source(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: smartmem.view %[[B]] at (d0) -> (-d0 + 3) : (tensor<4xf32>) -> tensor<4xf32>
  %0 = smartmem.view %a, %b pieces [[0 to 4] from 1 at (d0) -> (3 - d0)] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @same_source_twice
func.func @same_source_twice(%a: tensor<4xf32>) -> tensor<8xf32> {
  // CHECK:      smartmem.view %{{.*}} pieces [
  // CHECK-NEXT:   [0 to 4] from 0 at (d0) -> (d0),
  // CHECK-NEXT:   [4 to 8] from 0 at (d0) -> (d0 - 4)
  // CHECK-NEXT: ] : (tensor<4xf32>) -> tensor<8xf32>
  %0 = smartmem.view %a, %a pieces [[0 to 4] from 0 at (d0) -> (d0), [4 to 8] from 1 at (d0) -> (d0 - 4)] : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Halves that read alike are one piece: here the identity, which folds.
// CHECK-LABEL: func.func @join_pieces
func.func @join_pieces(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK-NEXT: return
  %0 = smartmem.view %a pieces [
    [0 to 4, 5 to 8] from 0 at (d0, d1) -> (d0, d1),
    [0 to 2, 0 to 5] from 0 at (d0, d1) -> (d0, d1),
    [2 to 4, 0 to 5] from 0 at (d0, d1) -> (d0, d1)
  ] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// Boxes that meet at a corner only do not join.
// CHECK-LABEL: func.func @diagonal
func.func @diagonal(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {
  // CHECK:      pieces [
  // CHECK-NEXT:   [0 to 1, 0 to 1] fill 0.000000e+00 : f32,
  // CHECK-NEXT:   [1 to 2, 1 to 2] fill 0.000000e+00 : f32,
  // CHECK-NEXT:   [0 to 1, 1 to 2] from 0
  // CHECK-NEXT:   [1 to 2, 0 to 1] from 0
  %0 = smartmem.view %a pieces [
    [0 to 1, 0 to 1] fill 0.0 : f32,
    [1 to 2, 1 to 2] fill 0.0 : f32,
    [0 to 1, 1 to 2] from 0 at (d0, d1) -> (d0, d1),
    [1 to 2, 0 to 1] from 0 at (d0, d1) -> (d0, d1)
  ] : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
