// Scores of attention: the product reads the keys along their own rows, and no transposed copy of them exists.
// RUN: smartmem-opt %s --smartmem-fold-views | FileCheck %s

// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
// CHECK-LABEL: func.func @f
// CHECK-NOT: smartmem.view
// CHECK: linalg.generic {indexing_maps = [#[[Q]], #[[K]], {{.*}} ins(%arg0, %arg1 : {{.*}}tensor<3x7x8xf32>)
func.func @f(%q: tensor<3x5x8xf32>, %k: tensor<3x7x8xf32>) -> tensor<3x5x7xf32> {
  %turned = smartmem.view %k at (d0, d1, d2) -> (d0, d2, d1) : (tensor<3x7x8xf32>) -> tensor<3x8x7xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x5x7xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<3x5x7xf32>) -> tensor<3x5x7xf32>
  %0 = linalg.batch_matmul ins(%q, %turned : tensor<3x5x8xf32>, tensor<3x8x7xf32>) outs(%start : tensor<3x5x7xf32>)
      -> tensor<3x5x7xf32>
  return %0 : tensor<3x5x7xf32>
}
