// An elementwise linalg.generic with its uninitialised output.
// RUN: smartmem-opt %s --smartmem-fold-layouts | FileCheck %s

#packed = #smartmem.layout<(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4), buffer>
#id = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @f
func.func @f(%a: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // CHECK: %[[E:.*]] = tensor.empty() : tensor<8x16xf32>
  // CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<8x16xf32>) outs(%[[E]] : tensor<8x16xf32>)
  // CHECK: math.tanh
  // CHECK: } -> tensor<8x16xf32>
  // CHECK-NEXT: return
  %0 = smartmem.convert_layout %a : tensor<8x16xf32> -> tensor<8x16xf32, #packed>
  %e = tensor.empty() : tensor<8x16xf32, #packed>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<8x16xf32, #packed>) outs(%e : tensor<8x16xf32, #packed>) {
  ^bb0(%x: f32, %y: f32):
    %t = math.tanh %x : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32, #packed>
  %2 = smartmem.convert_layout %1 : tensor<8x16xf32, #packed> -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}
