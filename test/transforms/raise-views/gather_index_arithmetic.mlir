// Indices computed from the position: quotients, remainders, affine maps, and a comparison that always holds.
// RUN: smartmem-opt %s --smartmem-raise-views | FileCheck %s

#id = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK: smartmem.view %arg0 at (d0) -> (d0 floordiv 4, d0 mod 4 + 1) : (tensor<3x5xf32>) -> tensor<12xf32>
func.func @f(%x: tensor<3x5xf32>) -> tensor<12xf32> {
  %four = arith.constant 4 : index
  %twelve = arith.constant 12 : index
  %e = tensor.empty() : tensor<12xf32>
  %0 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<12xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %row = arith.divsi %i, %four : index
    %rest = arith.remsi %i, %four : index
    %column = affine.apply affine_map<()[s0] -> (s0 + 1)>()[%rest]
    %inside = arith.cmpi slt, %i, %twelve : index
    %selected = arith.select %inside, %column, %i : index
    %element = tensor.extract %x[%row, %selected] : tensor<3x5xf32>
    linalg.yield %element : f32
  } -> tensor<12xf32>
  return %0 : tensor<12xf32>
}
