// RUN: smartmem-opt %s --allow-unregistered-dialect --smartmem-form-groups --smartmem-lower-groups-to-vulkan | FileCheck %s

// A product and its bias are one shader. A thread computes rows by one vector of lanes; the weight is stored in whole
// vectors, which is a view that is computed when the model is compiled.

#map = affine_map<(d0, d1) -> (d1)>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
func.func @matmul(%x: tensor<8x16xf32>) -> tensor<8x30xf32> {
  %weight = smartmem.parameter @weight : tensor<16x30xf32>
  %bias = smartmem.parameter @bias : tensor<30xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x30xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x30xf32>) -> tensor<8x30xf32>
  %product = linalg.matmul ins(%x, %weight : tensor<8x16xf32>, tensor<16x30xf32>) outs(%init : tensor<8x30xf32>) -> tensor<8x30xf32>
  %sum = linalg.generic {indexing_maps = [#map1, #map, #map1], iterator_types = ["parallel", "parallel"]}
      ins(%product, %bias : tensor<8x30xf32>, tensor<30xf32>) outs(%empty : tensor<8x30xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<8x30xf32>
  return %sum : tensor<8x30xf32>
}

// CHECK: "hal.executable.source"
// CHECK: #hal.executable.object<{path = "contraction_8x30x16.spv", data = dense<"0x03022307
// CHECK-LABEL: func.func @matmul(%arg0: tensor<8x16xf32>)
// CHECK: %[[WEIGHT:.*]] = smartmem.parameter @weight
// CHECK: %[[PACKED:.*]] = smartmem.view %[[WEIGHT]] pieces [
// CHECK: [0 to 16, 30 to 32] fill 0.000000e+00 : f32
// CHECK: "flow.dispatch"(%arg0, %[[PACKED]], %{{.*}}) {entry_points = [@contraction_8x30x16::@contraction_8x30x16]
