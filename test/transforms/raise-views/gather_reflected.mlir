// A reflecting border as importers spell it: one axis is read at positions from a table, after negative positions have
// been counted from the end. Each run of equal steps is a piece.
// RUN: smartmem-opt %s --smartmem-raise-views | FileCheck %s

#id = affine_map<(d0) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
#out = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @reflected
// CHECK: smartmem.view %arg0 pieces [
// CHECK-NEXT: [0 to 3, 0 to 3] from 0 at (d0, d1) -> (d0, -d1 + 2),
// CHECK-NEXT: [0 to 3, 3 to 6] from 0 at (d0, d1) -> (d0, d1 - 2),
// CHECK-NEXT: [0 to 3, 6 to 8] from 0 at (d0, d1) -> (d0, -d1 + 8)
// CHECK-NEXT: ] : (tensor<3x4xf32>) -> tensor<3x8xf32>
// CHECK-NOT: tensor.extract
func.func @reflected(%x: tensor<3x4xf32>) -> tensor<3x8xf32> {
  %table = arith.constant dense<[2, 1, 0, 1, 2, 3, 2, -3]> : tensor<8xi64>
  %e1 = tensor.empty() : tensor<8xi64>
  %from_start = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%table : tensor<8xi64>) outs(%e1 : tensor<8xi64>) {
  ^bb0(%t: i64, %o: i64):
    %zero = arith.constant 0 : i64
    %four = arith.constant 4 : i64
    %negative = arith.cmpi slt, %t, %zero : i64
    %moved = arith.addi %t, %four : i64
    %s = arith.select %negative, %moved, %t : i64
    linalg.yield %s : i64
  } -> tensor<8xi64>
  %e = tensor.empty() : tensor<3x8xf32>
  %r = linalg.generic {indexing_maps = [#column, #out], iterator_types = ["parallel", "parallel"]}
      ins(%from_start : tensor<8xi64>) outs(%e : tensor<3x8xf32>) {
  ^bb0(%t: i64, %o: f32):
    %row = linalg.index 0 : index
    %at = arith.index_cast %t : i64 to index
    %y = tensor.extract %x[%row, %at] : tensor<3x4xf32>
    linalg.yield %y : f32
  } -> tensor<3x8xf32>
  return %r : tensor<3x8xf32>
}

// Positions without a pattern stay a gather.
// CHECK-LABEL: func.func @shuffled
// CHECK: tensor.extract
func.func @shuffled(%x: tensor<3x20xf32>) -> tensor<3x18xf32> {
  %table = arith.constant dense<[7, 3, 19, 0, 12, 5, 1, 18, 2, 9, 4, 17, 6, 8, 15, 10, 16, 11]> : tensor<18xi64>
  %e = tensor.empty() : tensor<3x18xf32>
  %r = linalg.generic {indexing_maps = [#column, #out], iterator_types = ["parallel", "parallel"]}
      ins(%table : tensor<18xi64>) outs(%e : tensor<3x18xf32>) {
  ^bb0(%t: i64, %o: f32):
    %row = linalg.index 0 : index
    %at = arith.index_cast %t : i64 to index
    %y = tensor.extract %x[%row, %at] : tensor<3x20xf32>
    linalg.yield %y : f32
  } -> tensor<3x18xf32>
  return %r : tensor<3x18xf32>
}
