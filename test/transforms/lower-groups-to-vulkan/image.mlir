// Two products. What is between them is written by one shader and read by one, in whole texels: with storage=image it is
// an image. So are the weights, which are copied when the module is loaded. The result, which the caller reads, is not.
// RUN: smartmem-opt %s --allow-unregistered-dialect --smartmem-form-groups --smartmem-lower-groups-to-vulkan=storage=image | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-DAG: %[[A:.*]] = smartmem.parameter @a
// CHECK-DAG: %[[B:.*]] = smartmem.parameter @b
// CHECK-DAG: %[[IMAGE_A:.*]] = "flow.dispatch"(%[[A]]) {entry_points = [@to_image_4x8::@to_image_4x8], operandSegmentSizes = {{.*}}, smartmem.once}
// CHECK-DAG: %[[FIRST:.*]] = "flow.dispatch"(%arg0, %[[IMAGE_A]]) {entry_points = [@contraction_6x16x8::@contraction_6x16x8]
// CHECK-DAG: %[[IMAGE_B:.*]] = "flow.dispatch"(%[[B]]) {entry_points = [@to_image_2x16::@to_image_2x16], operandSegmentSizes = {{.*}}, smartmem.once}
// CHECK: "flow.dispatch"(%[[FIRST]], %[[IMAGE_B]]) {entry_points = [@contraction_6x8x16::@contraction_6x8x16]
func.func @f(%x: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %a = smartmem.parameter @a : tensor<8x16xf32>
  %b = smartmem.parameter @b : tensor<16x8xf32>
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<6x16xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<6x16xf32>) -> tensor<6x16xf32>
  %p = linalg.matmul ins(%x, %a : tensor<6x8xf32>, tensor<8x16xf32>) outs(%s0 : tensor<6x16xf32>) -> tensor<6x16xf32>
  %e1 = tensor.empty() : tensor<6x8xf32>
  %s1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6x8xf32>) -> tensor<6x8xf32>
  %q = linalg.matmul ins(%p, %b : tensor<6x16xf32>, tensor<16x8xf32>) outs(%s1 : tensor<6x8xf32>) -> tensor<6x8xf32>
  return %q : tensor<6x8xf32>
}
