// A batched product of one batch is a product; views take the axis away and put it back.
// RUN: smartmem-opt %s --smartmem-drop-unit-dims | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-DAG: %[[A:.*]] = smartmem.view %arg0 at (d0, d1) -> (0, d0, d1) : (tensor<1x4x5xf32>) -> tensor<4x5xf32>
// CHECK-DAG: %[[B:.*]] = smartmem.view %arg1 at (d0, d1) -> (0, d0, d1) : (tensor<1x5x3xf32>) -> tensor<5x3xf32>
// CHECK: %[[C:.*]] = linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "reduction"]
// CHECK-SAME: ins(%[[A]], %[[B]] : tensor<4x5xf32>, tensor<5x3xf32>)
// CHECK: smartmem.view %[[C]] at (d0, d1, d2) -> (d1, d2) : (tensor<4x3xf32>) -> tensor<1x4x3xf32>
func.func @f(%a: tensor<1x4x5xf32>, %b: tensor<1x5x3xf32>) -> tensor<1x4x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x3xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x3xf32>) -> tensor<1x4x3xf32>
  %0 = linalg.batch_matmul ins(%a, %b : tensor<1x4x5xf32>, tensor<1x5x3xf32>) outs(%start : tensor<1x4x3xf32>)
      -> tensor<1x4x3xf32>
  return %0 : tensor<1x4x3xf32>
}
