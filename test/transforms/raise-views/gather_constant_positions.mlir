// A gather at constant positions, as importers spell it: negative positions are counted from the end first.
// RUN: smartmem-opt %s --smartmem-raise-views --smartmem-compose-views | FileCheck %s

#id = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func.func @every_second
// CHECK: %[[V:.*]] = smartmem.view %arg0 at (d0) -> (d0 * 2 + 1) : (tensor<8xf32>) -> tensor<3xf32>
// CHECK: return %[[V]]
func.func @every_second(%x: tensor<8xf32>) -> tensor<3xf32> {
  %at = arith.constant dense<[1, 3, 5]> : tensor<3xi64>
  %zero = arith.constant 0 : i64
  %eight = arith.constant 8 : i64
  %e1 = tensor.empty() : tensor<3xi1>
  %negative = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%at : tensor<3xi64>) outs(%e1 : tensor<3xi1>) {
  ^bb0(%a: i64, %o: i1):
    %t = arith.cmpi slt, %a, %zero : i64
    linalg.yield %t : i1
  } -> tensor<3xi1>
  %e2 = tensor.empty() : tensor<3xi64>
  %later = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%at : tensor<3xi64>) outs(%e2 : tensor<3xi64>) {
  ^bb0(%a: i64, %o: i64):
    %t = arith.addi %a, %eight : i64
    linalg.yield %t : i64
  } -> tensor<3xi64>
  %place = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%negative, %later, %at : tensor<3xi1>, tensor<3xi64>, tensor<3xi64>) outs(%e2 : tensor<3xi64>) {
  ^bb0(%c: i1, %a: i64, %b: i64, %o: i64):
    %t = arith.select %c, %a, %b : i64
    linalg.yield %t : i64
  } -> tensor<3xi64>
  %e3 = tensor.empty() : tensor<3xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%place : tensor<3xi64>) outs(%e3 : tensor<3xf32>) {
  ^bb0(%a: i64, %o: f32):
    %i = arith.index_cast %a : i64 to index
    %t = tensor.extract %x[%i] : tensor<8xf32>
    linalg.yield %t : f32
  } -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// No step: 1, 3, 6.
// CHECK-LABEL: func.func @irregular
// CHECK-NOT: smartmem.view
// CHECK: tensor.extract
func.func @irregular(%x: tensor<8xf32>) -> tensor<3xf32> {
  %at = arith.constant dense<[1, 3, 6]> : tensor<3xi64>
  %e3 = tensor.empty() : tensor<3xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%at : tensor<3xi64>) outs(%e3 : tensor<3xf32>) {
  ^bb0(%a: i64, %o: f32):
    %i = arith.index_cast %a : i64 to index
    %t = tensor.extract %x[%i] : tensor<8xf32>
    linalg.yield %t : f32
  } -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
