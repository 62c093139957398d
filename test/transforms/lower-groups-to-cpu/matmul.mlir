// A product with a bias, for vectors of 4 lanes: the weight is packed in panels, the kernel multiplies their vectors by
// elements of the rows, and the bias is added before the store.
// RUN: smartmem-opt %s --allow-unregistered-dialect --smartmem-lower-groups-to-cpu='lanes=4 registers=16' | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

// CHECK: "stream.executable"
// CHECK: func.func @contraction_3x16x5
// CHECK: vector.load {{.*}} vector<4xf32>
// CHECK: memref.load
// CHECK: vector.fma
// CHECK: arith.addf {{.*}} : vector<4xf32>
// CHECK: vector.store
// CHECK-LABEL: func.func @f
// CHECK: %[[W:.*]] = smartmem.parameter @w
// CHECK: %[[PACKED:.*]] = smartmem.view %[[W]] at (d0, d1, d2) -> (d1, d0 * 8 + d2)
// CHECK: "flow.dispatch"(%arg0, %[[PACKED]], %arg1) {entry_points = [@contraction_3x16x5::@contraction_3x16x5]
func.func @f(%x: tensor<3x5xf32>, %bias: tensor<16xf32>) -> tensor<3x16xf32> {
  %w = smartmem.parameter @w : tensor<5x16xf32>
  %r = smartmem.group(%a = %x, %b = %w, %c = %bias) : (tensor<3x5xf32>, tensor<5x16xf32>, tensor<16xf32>) -> tensor<3x16xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<3x16xf32>
    %start = linalg.fill ins(%zero : f32) outs(%e : tensor<3x16xf32>) -> tensor<3x16xf32>
    %p = linalg.matmul ins(%a, %b : tensor<3x5xf32>, tensor<5x16xf32>) outs(%start : tensor<3x16xf32>) -> tensor<3x16xf32>
    %s = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
        ins(%p, %c : tensor<3x16xf32>, tensor<16xf32>) outs(%e : tensor<3x16xf32>) {
    ^bb0(%i: f32, %j: f32, %o: f32):
      %t = arith.addf %i, %j : f32
      linalg.yield %t : f32
    } -> tensor<3x16xf32>
    smartmem.yield %s : tensor<3x16xf32>
  }
  return %r : tensor<3x16xf32>
}
