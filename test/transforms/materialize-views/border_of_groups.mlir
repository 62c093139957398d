// Channels split into groups and a border around each image: the border comes first, in front of the expansion, so that
// what computes the image can write into the padded tensor.
// RUN: smartmem-opt %s --smartmem-raise-views --smartmem-compose-views --smartmem-materialize-views | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK: %[[P:.*]] = tensor.pad %arg0 low[0, 1, 2] high[0, 1, 0]
// CHECK: } : tensor<6x4x5xf32> to tensor<6x6x7xf32>
// CHECK: tensor.expand_shape %[[P]] {{\[\[}}0, 1, 2], [3], [4]] output_shape [1, 2, 3, 6, 7]
func.func @f(%x: tensor<6x4x5xf32>) -> tensor<1x2x3x6x7xf32> {
  %e = tensor.expand_shape %x [[0, 1, 2], [3], [4]] output_shape [1, 2, 3, 4, 5]
      : tensor<6x4x5xf32> into tensor<1x2x3x4x5xf32>
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %e low[0, 0, 0, 1, 2] high[0, 0, 0, 1, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index, %f: index):
    tensor.yield %zero : f32
  } : tensor<1x2x3x4x5xf32> to tensor<1x2x3x6x7xf32>
  return %p : tensor<1x2x3x6x7xf32>
}
