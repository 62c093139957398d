// A rotation computes the row of each element; the innermost dimension is read as it is.
// RUN: smartmem-opt %s --smartmem-materialize-views | FileCheck %s

// CHECK: #[[ROW:.*]] = affine_map<(d0) -> ((d0 + 3) mod 8)>
// CHECK-LABEL: func.func @f
// CHECK: linalg.generic
// CHECK: %[[I:.*]] = linalg.index 0
// CHECK: %[[J:.*]] = linalg.index 1
// CHECK: %[[R:.*]] = affine.apply #[[ROW]](%[[I]])
// CHECK: tensor.extract %arg0[%[[R]], %[[J]]] : tensor<8x4xf32>
func.func @f(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = smartmem.view %x at (d0, d1) -> ((d0 + 3) mod 8, d1) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
