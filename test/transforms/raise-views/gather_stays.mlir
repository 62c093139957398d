// Positions that are known at run time only, and one that is an argument of the function around the body.
// RUN: smartmem-opt %s --smartmem-raise-views | FileCheck %s --implicit-check-not=smartmem.view

#row = affine_map<(d0, d1) -> (d0)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#id1 = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func.func @run_time_positions
func.func @run_time_positions(%x: tensor<7x3xf32>, %at: tensor<4xi64>) -> tensor<4x3xf32> {
  // CHECK: linalg.generic
  %e = tensor.empty() : tensor<4x3xf32>
  %0 = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%at : tensor<4xi64>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%i: i64, %o: f32):
    %position = arith.index_cast %i : i64 to index
    %j = linalg.index 1 : index
    %element = tensor.extract %x[%position, %j] : tensor<7x3xf32>
    linalg.yield %element : f32
  } -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// CHECK-LABEL: func.func @argument
func.func @argument(%zero: index, %at: index, %x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: linalg.generic
  %zeros = arith.constant dense<0> : tensor<4xindex>
  %0 = linalg.generic {indexing_maps = [#id1, #id1, #id1], iterator_types = ["parallel"]}
      ins(%x, %zeros : tensor<4xf32>, tensor<4xindex>) outs(%x : tensor<4xf32>) {
  ^bb0(%a: f32, %i: index, %o: f32):
    %element = tensor.extract %x[%at] : tensor<4xf32>
    linalg.yield %element : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
