// Tensors one after another are a concatenation, in the order in which they lie, and so are slices of them; elements
// that are reordered on the way are not.
// RUN: smartmem-opt %s --smartmem-materialize-views | FileCheck %s

// CHECK-LABEL: func.func @whole
func.func @whole(%x: tensor<4x2xf32>, %y: tensor<4x3xf32>) -> tensor<4x5xf32> {
  // CHECK: tensor.concat dim(1) %arg1, %arg0 : (tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<4x5xf32>
  %0 = smartmem.view %x, %y pieces [
    [0 to 4, 0 to 3] from 1 at (d0, d1) -> (d0, d1), [0 to 4, 3 to 5] from 0 at (d0, d1) -> (d0, d1 - 3)
  ] : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// CHECK-LABEL: func.func @slices
func.func @slices(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<5xf32> {
  // CHECK: %[[X:.*]] = tensor.extract_slice %arg0[0] [3] [1]
  // CHECK: %[[Y:.*]] = tensor.extract_slice %arg1[2] [2] [1]
  // CHECK: tensor.concat dim(0) %[[X]], %[[Y]]
  %0 = smartmem.view %x, %y pieces [[0 to 3] from 0 at (d0) -> (d0), [3 to 5] from 1 at (d0) -> (d0 - 1)]
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// CHECK-LABEL: func.func @reversed
func.func @reversed(%x: tensor<3xf32>, %y: tensor<2xf32>) -> tensor<5xf32> {
  // CHECK-NOT: tensor.concat
  // CHECK: arith.select
  %0 = smartmem.view %x, %y pieces [[0 to 3] from 0 at (d0) -> (2 - d0), [3 to 5] from 1 at (d0) -> (d0 - 3)]
      : (tensor<3xf32>, tensor<2xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
