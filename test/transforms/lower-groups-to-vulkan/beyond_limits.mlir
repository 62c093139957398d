// Images of at most four texels a side. The first weight has four texels of lanes for 5 x 4 terms of the sum, too many rows
// for an image: it is an array of five. Folding the 16 terms of the second one would put a division into the sum: it is a
// texel buffer, which needs no copy. The third exceeds the limit of these as well, and stays in a buffer.
// RUN: smartmem-opt %s --allow-unregistered-dialect --smartmem-form-groups --smartmem-lower-groups-to-vulkan=storage=image | FileCheck %s

module attributes {smartmem.vulkan_device = {
    invocations = 64, shared_bytes = 16384, lanes = 64, registers = 0, workgroups = array<i64: 65535, 65535>, spirv_version = "1.3",
    executable_target = "#hal.executable.target<\22vulkan-spirv\22, \22vulkan-spirv-fb\22>", half = false,
    image_extent = 4, image_layers = 8, texel_elements = 64}} {
  // The texel buffers of the second shader: what it reads as binding 1. "fmt=" follows "binding=1 " in hexadecimal.
  // CHECK-DAG: path = "contraction_1x16x16.spv", data = dense<"0x{{[0-9A-F]*}}62696E64696E673D3120666D743D
  // CHECK-DAG: path = "contraction_1x32x16.spv"
  // CHECK-LABEL: func.func @f
  // CHECK-DAG: %[[A:.*]] = smartmem.parameter @a
  // CHECK-DAG: %[[B:.*]] = smartmem.parameter @b
  // CHECK-DAG: %[[C:.*]] = smartmem.parameter @c
  // CHECK-DAG: %[[IMAGE_A:.*]] = "flow.dispatch"(%[[A]]) {entry_points = [@to_image_4x4x5::@to_image_4x4x5], operandSegmentSizes = {{.*}}, smartmem.once}
  // CHECK: %[[P:.*]] = "flow.dispatch"(%arg0, %[[IMAGE_A]])
  // CHECK: %[[Q:.*]] = "flow.dispatch"(%[[P]], %[[B]]) {entry_points = [@contraction_1x16x16::@contraction_1x16x16]
  // CHECK: "flow.dispatch"(%[[Q]], %[[C]]) {entry_points = [@contraction_1x32x16::@contraction_1x32x16]
  func.func @f(%x: tensor<1x5x4xf32>) -> tensor<1x32xf32> {
    %a = smartmem.parameter @a : tensor<5x4x16xf32>
    %b = smartmem.parameter @b : tensor<16x16xf32>
    %c = smartmem.parameter @c : tensor<16x32xf32>
    %zero = arith.constant 0.0 : f32
    %e0 = tensor.empty() : tensor<1x16xf32>
    %s0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<1x16xf32>) -> tensor<1x16xf32>
    %p = linalg.generic {
        indexing_maps = [affine_map<(m, n, r, s) -> (m, r, s)>, affine_map<(m, n, r, s) -> (r, s, n)>, affine_map<(m, n, r, s) -> (m, n)>],
        iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
        ins(%x, %a : tensor<1x5x4xf32>, tensor<5x4x16xf32>) outs(%s0 : tensor<1x16xf32>) {
      ^bb0(%i: f32, %j: f32, %o: f32):
        %m = arith.mulf %i, %j : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
    } -> tensor<1x16xf32>
    %e1 = tensor.empty() : tensor<1x16xf32>
    %s1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x16xf32>) -> tensor<1x16xf32>
    %q = linalg.matmul ins(%p, %b : tensor<1x16xf32>, tensor<16x16xf32>) outs(%s1 : tensor<1x16xf32>) -> tensor<1x16xf32>
    %e2 = tensor.empty() : tensor<1x32xf32>
    %s2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<1x32xf32>) -> tensor<1x32xf32>
    %r = linalg.matmul ins(%q, %c : tensor<1x16xf32>, tensor<16x32xf32>) outs(%s2 : tensor<1x32xf32>) -> tensor<1x32xf32>
    return %r : tensor<1x32xf32>
  }
}
