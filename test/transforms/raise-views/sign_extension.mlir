// A truth value that is sign-extended is 0 or -1, not 0 or 1: what is computed from it is no view.
// RUN: smartmem-opt %s --smartmem-raise-views | FileCheck %s --implicit-check-not=smartmem.view

#id = affine_map<(d0) -> (d0)>
// CHECK: arith.extsi
func.func @f(%x: tensor<4xf32>) -> tensor<2xf32> {
  %two = arith.constant 2 : index
  %one = arith.constant 1 : i64
  %e = tensor.empty() : tensor<2xf32>
  %0 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<2xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %always = arith.cmpi slt, %i, %two : index
    %minus_one = arith.extsi %always : i1 to i64
    %zero = arith.addi %one, %minus_one : i64
    %position = arith.index_cast %zero : i64 to index
    %element = tensor.extract %x[%position] : tensor<4xf32>
    linalg.yield %element : f32
  } -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
