// A dispatch that depends on a weight alone runs when the module is loaded: a weight is copied into an image once. One
// that reads a constant of the text stays where it is.
// RUN: smartmem-opt %s --allow-unregistered-dialect --smartmem-convert-to-iree | FileCheck %s

// CHECK: "util.global"() {initial_value = #flow.parameter.named<"model"::"w"> : tensor<8x4xf32>, sym_name = "parameter_w"
// CHECK: "util.global"() {sym_name = "parameter_once", sym_visibility = "private", type = tensor<8x4xf32>}
// CHECK: "util.initializer"() ({
// CHECK:   %[[W:.*]] = "util.global.load"() {global = @parameter_w
// CHECK:   %[[IMAGE:.*]] = "flow.dispatch"(%[[W]]) {entry_points = [@to_image::@to_image]
// CHECK-NOT: smartmem.once
// CHECK:   "util.global.store"(%[[IMAGE]]) {global = @parameter_once}
// CHECK-LABEL: func.func @f
// CHECK: %[[LOADED:.*]] = "util.global.load"() {global = @parameter_once}
// CHECK: %[[CONSTANT:.*]] = "flow.dispatch"(%{{.*}}) {entry_points = [@to_image::@to_image]
// CHECK: "flow.dispatch"(%arg0, %[[LOADED]], %[[CONSTANT]])
func.func @f(%x: tensor<3x8xf32>) -> tensor<3x4xf32> {
  %w = smartmem.parameter @w : tensor<8x4xf32>
  %image = "flow.dispatch"(%w) {entry_points = [@to_image::@to_image], operandSegmentSizes = array<i32: 0, 1, 0, 0>, smartmem.once} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %c = arith.constant dense<1.0> : tensor<8x4xf32>
  %other = "flow.dispatch"(%c) {entry_points = [@to_image::@to_image], operandSegmentSizes = array<i32: 0, 1, 0, 0>, smartmem.once} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %r = "flow.dispatch"(%x, %image, %other) {entry_points = [@k::@k], operandSegmentSizes = array<i32: 0, 3, 0, 0>} : (tensor<3x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
