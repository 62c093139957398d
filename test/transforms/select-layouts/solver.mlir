// The cheapest layouts of all, by the target's rates. The weights are constant, so they are stored as the kernels read
// them; the two convolutions agree on channels last, and the caller's order is restored by one view at the end. Where a
// copy costs more than it gains, nothing moves: the second writes rows of its image, which it then has to read as rows.
// RUN: smartmem-opt %s --smartmem-select-layouts=layouts=solver | FileCheck %s
// The rates are given, so that nothing here depends on the defaults.
// RUN: sed 's/strided_element_ns = 0.2/strided_element_ns = 1000.0/' %s | smartmem-opt --smartmem-select-layouts=layouts=solver | FileCheck %s --check-prefix=DEAR
// RUN: not smartmem-opt %s --smartmem-select-layouts='layouts=solver time-limit-s=0' 2>&1 | FileCheck %s --check-prefix=LIMIT

// LIMIT: time-limit-s is 0

#image = affine_map<(f, h, w, c, r, s) -> (c, h + r, w + s)>
#weight = affine_map<(f, h, w, c, r, s) -> (f, c, r, s)>
#out = affine_map<(f, h, w, c, r, s) -> (f, h, w)>

// CHECK-LABEL: func.func @f
// CHECK: %[[FIRST:.*]] = linalg.generic {{.*}} ins(%arg0, %{{.*}} : tensor<48x9x9xf32>, tensor<64x48x3x3xf32>) outs({{.*}} : tensor<7x7x64xf32>)
// CHECK: %[[SECOND:.*]] = linalg.generic {{.*}} ins(%[[FIRST]], %{{.*}} : tensor<7x7x64xf32>, tensor<64x64x3x3xf32>) outs({{.*}} : tensor<5x5x64xf32>)
// CHECK: %[[RESULT:.*]] = smartmem.view %[[SECOND]] at (d0, d1, d2) -> (d1, d2, d0)
// CHECK: return %[[RESULT]] : tensor<64x5x5xf32>
// DEAR-LABEL: func.func @f
// DEAR: outs({{.*}} : tensor<64x7x7xf32>)
// DEAR: outs({{.*}} : tensor<64x5x5xf32>)
// DEAR-NOT: smartmem.view
module attributes {smartmem.layout_rates = {strided_element_ns = 0.2, unpacked_kernel_macs_per_ns = 10.0, kernel_macs_per_ns = 27.0, fallback_window_macs_per_ns = 0.6}} {
func.func @f(%x: tensor<48x9x9xf32>) -> tensor<64x5x5xf32> {
  %w1 = smartmem.parameter @w1 : tensor<64x48x3x3xf32>
  %w2 = smartmem.parameter @w2 : tensor<64x64x3x3xf32>
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<64x7x7xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64x7x7xf32>) -> tensor<64x7x7xf32>
  %c1 = linalg.generic {indexing_maps = [#image, #weight, #out],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w1 : tensor<48x9x9xf32>, tensor<64x48x3x3xf32>) outs(%f1 : tensor<64x7x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x7x7xf32>
  %e2 = tensor.empty() : tensor<64x5x5xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<64x5x5xf32>) -> tensor<64x5x5xf32>
  %c2 = linalg.generic {indexing_maps = [#image, #weight, #out],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%c1, %w2 : tensor<64x7x7xf32>, tensor<64x64x3x3xf32>) outs(%f2 : tensor<64x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x5x5xf32>
  return %c2 : tensor<64x5x5xf32>
}
}
