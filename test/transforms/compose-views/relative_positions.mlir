// Scores by distance become scores by position: a column of zeros, a reshape that shifts each row, slices. The reshape
// alone would cut the padded scores into pieces of rows; once the slices are composed too, one skewed read is left.
// RUN: smartmem-opt %s --smartmem-raise-views --smartmem-compose-views | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK: smartmem.view %arg0 at (d0, d1) -> (d0, -d0 + d1 + 7) : (tensor<8x15xf32>) -> tensor<8x8xf32>
// CHECK-NEXT: return
func.func @f(%x: tensor<8x15xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.pad %x low[0, 1] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<8x15xf32> to tensor<8x16xf32>
  %1 = tensor.collapse_shape %0 [[0, 1]] : tensor<8x16xf32> into tensor<128xf32>
  %2 = tensor.expand_shape %1 [[0, 1]] output_shape [16, 8] : tensor<128xf32> into tensor<16x8xf32>
  %3 = tensor.extract_slice %2[1, 0] [15, 8] [1, 1] : tensor<16x8xf32> to tensor<15x8xf32>
  %4 = tensor.collapse_shape %3 [[0, 1]] : tensor<15x8xf32> into tensor<120xf32>
  %5 = tensor.expand_shape %4 [[0, 1]] output_shape [8, 15] : tensor<120xf32> into tensor<8x15xf32>
  %6 = tensor.extract_slice %5[0, 0] [8, 8] [1, 1] : tensor<8x15xf32> to tensor<8x8xf32>
  return %6 : tensor<8x8xf32>
}
