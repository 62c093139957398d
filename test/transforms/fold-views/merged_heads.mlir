// The product of weights and values writes tokens first and heads second, so that merging the heads is a reshape.
// RUN: smartmem-opt %s --smartmem-fold-views | FileCheck %s

// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d0, d2)>
// CHECK-LABEL: func.func @f
// CHECK: %[[P:.*]] = linalg.generic {indexing_maps = [{{.*}}, #[[OUT]]]
// CHECK-SAME: outs(%{{.*}} : tensor<5x3x8xf32>)
// CHECK: smartmem.view %[[P]] at (d0, d1) -> (d0, d1 floordiv 8, d1 mod 8) : (tensor<5x3x8xf32>) -> tensor<5x24xf32>
func.func @f(%p: tensor<3x5x5xf32>, %v: tensor<3x5x8xf32>) -> tensor<5x24xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x5x8xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<3x5x8xf32>) -> tensor<3x5x8xf32>
  %0 = linalg.batch_matmul ins(%p, %v : tensor<3x5x5xf32>, tensor<3x5x8xf32>) outs(%start : tensor<3x5x8xf32>)
      -> tensor<3x5x8xf32>
  %1 = smartmem.view %0 at (d0, d1) -> (d1 floordiv 8, d0, d1 mod 8) : (tensor<3x5x8xf32>) -> tensor<5x24xf32>
  return %1 : tensor<5x24xf32>
}
