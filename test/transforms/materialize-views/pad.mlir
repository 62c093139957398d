// One tensor inside a border of one constant; a border of two constants computes indices.
// RUN: smartmem-opt %s --smartmem-materialize-views | FileCheck %s

// CHECK-LABEL: func.func @one_constant
func.func @one_constant(%x: tensor<2x3xf32>) -> tensor<3x4xf32> {
  // CHECK: tensor.pad %arg0 low[1, 0] high[0, 1]
  // CHECK: tensor.yield %cst
  %0 = smartmem.view %x pieces [
    [0 to 1, 0 to 4] fill 0.5 : f32, [1 to 3, 0 to 3] from 0 at (d0, d1) -> (d0 - 1, d1),
    [1 to 3, 3 to 4] fill 0.5 : f32
  ] : (tensor<2x3xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// CHECK-LABEL: func.func @two_constants
func.func @two_constants(%x: tensor<2xf32>) -> tensor<4xf32> {
  // CHECK-NOT: tensor.pad
  // CHECK: arith.select
  %0 = smartmem.view %x pieces [[0 to 1] fill 0.0 : f32, [1 to 3] from 0 at (d0) -> (d0 - 1), [3 to 4] fill 1.0 : f32]
      : (tensor<2xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Only a part of the tensor is inside.
// CHECK-LABEL: func.func @part
func.func @part(%x: tensor<5xf32>) -> tensor<3xf32> {
  // CHECK: %[[PART:.*]] = tensor.extract_slice %arg0[1] [2] [1]
  // CHECK: tensor.pad %[[PART]] low[0] high[1]
  %0 = smartmem.view %x pieces [[0 to 2] from 0 at (d0) -> (d0 + 1), [2 to 3] fill 0.0 : f32]
      : (tensor<5xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// What is inside is reordered.
// CHECK-LABEL: func.func @reversed
func.func @reversed(%x: tensor<2xf32>) -> tensor<3xf32> {
  // CHECK-NOT: tensor.pad
  // CHECK: arith.select
  %0 = smartmem.view %x pieces [[0 to 2] from 0 at (d0) -> (1 - d0), [2 to 3] fill 0.0 : f32]
      : (tensor<2xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
