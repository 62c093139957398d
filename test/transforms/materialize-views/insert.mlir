// Parts that are stacked along an inner axis are inserted, each into the tensor with those before it.
// RUN: smartmem-opt %s --smartmem-materialize-views=insert=true | FileCheck %s

// CHECK-LABEL: func.func @inner
// CHECK-SAME: %[[A:.*]]: tensor<5x4xf32>, %[[B:.*]]: tensor<5x2xf32>
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<5x6xf32>
// CHECK: %[[FIRST:.*]] = tensor.insert_slice %[[A]] into %[[EMPTY]][0, 0] [5, 4] [1, 1]
// CHECK: %[[BOTH:.*]] = tensor.insert_slice %[[B]] into %[[FIRST]][0, 4] [5, 2] [1, 1]
// CHECK: return %[[BOTH]]
func.func @inner(%a: tensor<5x4xf32>, %b: tensor<5x2xf32>) -> tensor<5x6xf32> {
  %0 = smartmem.view %a, %b pieces [
    [0 to 5, 0 to 4] from 0 at (d0, d1) -> (d0, d1),
    [0 to 5, 4 to 6] from 1 at (d0, d1) -> (d0, d1 - 4)
  ] : (tensor<5x4xf32>, tensor<5x2xf32>) -> tensor<5x6xf32>
  return %0 : tensor<5x6xf32>
}

// What is outermost is one piece of memory after the other.
// CHECK-LABEL: func.func @outer
// CHECK: tensor.concat dim(0)
func.func @outer(%a: tensor<4x5xf32>, %b: tensor<2x5xf32>) -> tensor<6x5xf32> {
  %0 = smartmem.view %a, %b pieces [
    [0 to 4, 0 to 5] from 0 at (d0, d1) -> (d0, d1),
    [4 to 6, 0 to 5] from 1 at (d0, d1) -> (d0 - 4, d1)
  ] : (tensor<4x5xf32>, tensor<2x5xf32>) -> tensor<6x5xf32>
  return %0 : tensor<6x5xf32>
}

// What reads the stack element by element would take the insertions into its kernel.
// CHECK-LABEL: func.func @computed_with
// CHECK: tensor.concat dim(1)
func.func @computed_with(%a: tensor<5x4xf32>, %b: tensor<5x2xf32>) -> tensor<5x6xf32> {
  %0 = smartmem.view %a, %b pieces [
    [0 to 5, 0 to 4] from 0 at (d0, d1) -> (d0, d1),
    [0 to 5, 4 to 6] from 1 at (d0, d1) -> (d0, d1 - 4)
  ] : (tensor<5x4xf32>, tensor<5x2xf32>) -> tensor<5x6xf32>
  %e = tensor.empty() : tensor<5x6xf32>
  %1 = linalg.exp ins(%0 : tensor<5x6xf32>) outs(%e : tensor<5x6xf32>) -> tensor<5x6xf32>
  return %1 : tensor<5x6xf32>
}
