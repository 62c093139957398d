// Four strided slices side by side (patch merging) read one tensor: one operand, one map.
// RUN: smartmem-opt %s --smartmem-raise-views --smartmem-compose-views | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT: smartmem.view %arg0 at (d0, d1, d2) ->
// CHECK-SAME: (d0 * 2 + (d2 floordiv 4) mod 2, d1 * 2 + d2 floordiv 8, d2 mod 4) : (tensor<6x6x4xf32>)
func.func @f(%x: tensor<6x6x4xf32>) -> tensor<3x3x16xf32> {
  %0 = tensor.extract_slice %x[0, 0, 0] [3, 3, 4] [2, 2, 1] : tensor<6x6x4xf32> to tensor<3x3x4xf32>
  %1 = tensor.extract_slice %x[1, 0, 0] [3, 3, 4] [2, 2, 1] : tensor<6x6x4xf32> to tensor<3x3x4xf32>
  %2 = tensor.extract_slice %x[0, 1, 0] [3, 3, 4] [2, 2, 1] : tensor<6x6x4xf32> to tensor<3x3x4xf32>
  %3 = tensor.extract_slice %x[1, 1, 0] [3, 3, 4] [2, 2, 1] : tensor<6x6x4xf32> to tensor<3x3x4xf32>
  %4 = tensor.concat dim(2) %0, %1, %2, %3
      : (tensor<3x3x4xf32>, tensor<3x3x4xf32>, tensor<3x3x4xf32>, tensor<3x3x4xf32>) -> tensor<3x3x16xf32>
  return %4 : tensor<3x3x16xf32>
}
