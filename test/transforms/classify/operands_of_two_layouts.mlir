// A sum of operands that are read in one order does not mind the layout. Once one of them is read across, or has another
// layout, no order suits both: the operation changes its group.
// RUN: smartmem-opt %s --smartmem-classify | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#packed = #smartmem.layout<(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4), buffer>
// CHECK-LABEL: @one_order
// CHECK: smartmem.op_class = #smartmem.op_class<ili_variable>
func.func @one_order(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = linalg.generic {indexing_maps = [#turned, #turned, #turned], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.addf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
// CHECK-LABEL: @two_orders
// CHECK: smartmem.op_class = #smartmem.op_class<ild_variable>
func.func @two_orders(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #turned, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.addf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
