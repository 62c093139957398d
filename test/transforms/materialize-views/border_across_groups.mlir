// A border around the groups themselves is none of the tensor before the expansion: that is expanded first.
// RUN: smartmem-opt %s --smartmem-raise-views --smartmem-compose-views --smartmem-materialize-views | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK: %[[E:.*]] = tensor.expand_shape %arg0
// CHECK: tensor.pad %[[E]] low[0, 1, 0] high[0, 1, 0]
func.func @f(%x: tensor<6x5xf32>) -> tensor<2x5x5xf32> {
  %e = tensor.expand_shape %x [[0, 1], [2]] output_shape [2, 3, 5] : tensor<6x5xf32> into tensor<2x3x5xf32>
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %e low[0, 1, 0] high[0, 1, 0] {
  ^bb0(%a: index, %b: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<2x3x5xf32> to tensor<2x5x5xf32>
  return %p : tensor<2x5x5xf32>
}
