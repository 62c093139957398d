// A border of one constant, of any element type.
// RUN: smartmem-opt %s --smartmem-raise-views | FileCheck %s

// CHECK-LABEL: func.func @minus_infinity
func.func @minus_infinity(%x: tensor<2x3xf32>) -> tensor<2x5xf32> {
  // CHECK: [0 to 2, 0 to 1] fill 0xFF800000 : f32
  // CHECK: [0 to 2, 1 to 4] from 0 at (d0, d1) -> (d0, d1 - 1)
  // CHECK: [0 to 2, 4 to 5] fill 0xFF800000 : f32
  %c = arith.constant 0xFF800000 : f32
  %0 = tensor.pad %x low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %c : f32
  } : tensor<2x3xf32> to tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}

// CHECK-LABEL: func.func @truth
func.func @truth(%x: tensor<3xi1>) -> tensor<4xi1> {
  // CHECK: [3 to 4] fill true
  %c = arith.constant true
  %0 = tensor.pad %x low[0] high[1] {
  ^bb0(%i: index):
    tensor.yield %c : i1
  } : tensor<3xi1> to tensor<4xi1>
  return %0 : tensor<4xi1>
}

// The border's value is an argument: it stays.
// CHECK-LABEL: func.func @run_time_value
func.func @run_time_value(%x: tensor<3xf32>, %v: f32) -> tensor<4xf32> {
  // CHECK: tensor.pad
  %0 = tensor.pad %x low[0] high[1] {
  ^bb0(%i: index):
    tensor.yield %v : f32
  } : tensor<3xf32> to tensor<4xf32>
  return %0 : tensor<4xf32>
}
