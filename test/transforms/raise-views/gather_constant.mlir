// A gather at one constant position as PyTorch's importer spells it: a negative index is wrapped by compare and select.
// RUN: smartmem-opt %s --smartmem-raise-views | FileCheck %s

#row = affine_map<(d0, d1) -> (d0)>
#id = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @f
// CHECK-NOT: linalg.generic
// CHECK: smartmem.view %arg0 at (d0, d1) -> (5, d1) : (tensor<7x3xf32>) -> tensor<1x3xf32>
func.func @f(%x: tensor<7x3xf32>) -> tensor<1x3xf32> {
  %at = arith.constant dense<-2> : tensor<1xi64>
  %zero = arith.constant 0 : i64
  %seven = arith.constant 7 : i64
  %e = tensor.empty() : tensor<1x3xf32>
  %0 = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%at : tensor<1xi64>) outs(%e : tensor<1x3xf32>) {
  ^bb0(%i: i64, %o: f32):
    %j = linalg.index 1 : index
    %negative = arith.cmpi slt, %i, %zero : i64
    %wrapped = arith.addi %i, %seven : i64
    %selected = arith.select %negative, %wrapped, %i : i64
    %position = arith.index_cast %selected : i64 to index
    %element = tensor.extract %x[%position, %j] : tensor<7x3xf32>
    linalg.yield %element : f32
  } -> tensor<1x3xf32>
  return %0 : tensor<1x3xf32>
}
