// Two embeddings, added for a row sum and what follows it: their gathers join the addition.
// RUN: smartmem-opt %s --smartmem-pin-epilogues | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK: %[[S:.*]] = smartmem.group(
// CHECK-COUNT-2: tensor.extract
// CHECK: arith.addf
// CHECK: smartmem.yield
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%[[S]]
func.func @f(%table: tensor<9x3xf32>, %at: tensor<8xi64>, %places: tensor<9x3xf32>, %pos: tensor<8xi64>)
    -> (tensor<8x3xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x3xf32>
  %a = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%at : tensor<8xi64>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%l: i64, %o: f32):
    %i = arith.index_cast %l : i64 to index
    %j = linalg.index 1 : index
    %t = tensor.extract %table[%i, %j] : tensor<9x3xf32>
    linalg.yield %t : f32
  } -> tensor<8x3xf32>
  %b = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%pos : tensor<8xi64>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%l: i64, %o: f32):
    %i = arith.index_cast %l : i64 to index
    %j = linalg.index 1 : index
    %t = tensor.extract %places[%i, %j] : tensor<9x3xf32>
    linalg.yield %t : f32
  } -> tensor<8x3xf32>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<8x3xf32>, tensor<8x3xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %t = arith.addf %l, %r : f32
    linalg.yield %t : f32
  } -> tensor<8x3xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<8x3xf32>) outs(%start : tensor<8xf32>) {
  ^bb0(%l: f32, %o: f32):
    %t = arith.addf %l, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %s, %sum : tensor<8x3xf32>, tensor<8xf32>
}
