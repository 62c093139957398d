// The factors are scaled in f16 and summed in f32: the sum is not to be rounded to f16.
// RUN: smartmem-opt %s --smartmem-sink-scales | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#all = affine_map<(d0, d1) -> ()>
// CHECK-LABEL: func.func @f
// CHECK: arith.mulf %{{.*}} : f16
// CHECK: linalg.matmul
// CHECK-NOT: linalg.generic
func.func @f(%q: tensor<4x8xf16>, %k: tensor<8x6xf16>, %s: tensor<f16>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x8xf16>
  %scaled = linalg.generic {indexing_maps = [#id, #all, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q, %s : tensor<4x8xf16>, tensor<f16>) outs(%e : tensor<4x8xf16>) {
  ^bb0(%a: f16, %b: f16, %o: f16):
    %m = arith.mulf %a, %b : f16
    linalg.yield %m : f16
  } -> tensor<4x8xf16>
  %zero = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<4x6xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = linalg.matmul ins(%scaled, %k : tensor<4x8xf16>, tensor<8x6xf16>) outs(%start : tensor<4x6xf32>)
      -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
