// A gather at run-time positions reads a broadcast, permuted tensor: it reads the tensor itself. Through a reshape it
// would divide for every element, so that one stays.
// RUN: smartmem-opt %s --smartmem-fold-views | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @broadcast
// CHECK-SAME: %[[X:.*]]: tensor<5x7xf32>
// CHECK-NOT: smartmem.view
// CHECK: %[[P:.*]] = arith.index_cast
// CHECK: %[[J:.*]] = linalg.index 1
// CHECK: tensor.extract %[[X]][%[[J]], %[[P]]] : tensor<5x7xf32>
func.func @broadcast(%x: tensor<5x7xf32>, %at: tensor<3x5xi32>) -> tensor<3x5xf32> {
  %v = smartmem.view %x at (d0, d1, d2) -> (d2, d1) : (tensor<5x7xf32>) -> tensor<3x7x5xf32>
  %e = tensor.empty() : tensor<3x5xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%at : tensor<3x5xi32>) outs(%e : tensor<3x5xf32>) {
  ^bb0(%p: i32, %o: f32):
    %i = linalg.index 0 : index
    %k = arith.index_cast %p : i32 to index
    %j = linalg.index 1 : index
    %y = tensor.extract %v[%i, %k, %j] : tensor<3x7x5xf32>
    linalg.yield %y : f32
  } -> tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}

// CHECK-LABEL: func.func @reshape
// CHECK: %[[V:.*]] = smartmem.view
// CHECK: tensor.extract %[[V]]
func.func @reshape(%x: tensor<5x7xf32>, %at: tensor<3x5xi32>) -> tensor<3x5xf32> {
  %v = smartmem.view %x at (d0) -> (d0 floordiv 7, d0 mod 7) : (tensor<5x7xf32>) -> tensor<35xf32>
  %e = tensor.empty() : tensor<3x5xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%at : tensor<3x5xi32>) outs(%e : tensor<3x5xf32>) {
  ^bb0(%p: i32, %o: f32):
    %k = arith.index_cast %p : i32 to index
    %y = tensor.extract %v[%k] : tensor<35xf32>
    linalg.yield %y : f32
  } -> tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}
