// A roll by (-3, -3) as importers spell it, two slices and a concatenation an axis, is one map with two remainders.
// RUN: smartmem-opt %s --smartmem-raise-views --smartmem-compose-views | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT: smartmem.view %arg0 at (d0, d1, d2) -> ((d0 + 3) mod 14, (d1 + 3) mod 14, d2)
// CHECK-NEXT: return
func.func @f(%x: tensor<14x14x8xf32>) -> tensor<14x14x8xf32> {
  %0 = tensor.extract_slice %x[3, 0, 0] [11, 14, 8] [1, 1, 1] : tensor<14x14x8xf32> to tensor<11x14x8xf32>
  %1 = tensor.extract_slice %x[0, 0, 0] [3, 14, 8] [1, 1, 1] : tensor<14x14x8xf32> to tensor<3x14x8xf32>
  %2 = tensor.concat dim(0) %0, %1 : (tensor<11x14x8xf32>, tensor<3x14x8xf32>) -> tensor<14x14x8xf32>
  %3 = tensor.extract_slice %2[0, 3, 0] [14, 11, 8] [1, 1, 1] : tensor<14x14x8xf32> to tensor<14x11x8xf32>
  %4 = tensor.extract_slice %2[0, 0, 0] [14, 3, 8] [1, 1, 1] : tensor<14x14x8xf32> to tensor<14x3x8xf32>
  %5 = tensor.concat dim(1) %3, %4 : (tensor<14x11x8xf32>, tensor<14x3x8xf32>) -> tensor<14x14x8xf32>
  return %5 : tensor<14x14x8xf32>
}
