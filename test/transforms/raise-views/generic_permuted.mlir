// A generic that yields an element moves it, whether it permutes what it reads or what it writes.
// RUN: smartmem-opt %s --smartmem-raise-views | FileCheck %s

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#turned = affine_map<(d0, d1, d2) -> (d1, d2, d0)>

// CHECK-LABEL: func.func @reads
func.func @reads(%x: tensor<3x5x2xf32>) -> tensor<2x3x5xf32> {
  // CHECK: smartmem.view %arg0 at (d0, d1, d2) -> (d1, d2, d0) : (tensor<3x5x2xf32>) -> tensor<2x3x5xf32>
  %e = tensor.empty() : tensor<2x3x5xf32>
  %0 = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<3x5x2xf32>) outs(%e : tensor<2x3x5xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x3x5xf32>
  return %0 : tensor<2x3x5xf32>
}

// CHECK-LABEL: func.func @writes
func.func @writes(%x: tensor<2x3x5xf32>) -> tensor<3x5x2xf32> {
  // CHECK: smartmem.view %arg0 at (d0, d1, d2) -> (d2, d0, d1) : (tensor<2x3x5xf32>) -> tensor<3x5x2xf32>
  %e = tensor.empty() : tensor<3x5x2xf32>
  %0 = linalg.generic {indexing_maps = [#id, #turned], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x3x5xf32>) outs(%e : tensor<3x5x2xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<3x5x2xf32>
  return %0 : tensor<3x5x2xf32>
}
