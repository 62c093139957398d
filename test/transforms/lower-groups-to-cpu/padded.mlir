// The kernel copies the lines that it reads to its stack and writes their border there: nobody pads the image.
// RUN: smartmem-opt %s --allow-unregistered-dialect --smartmem-lower-groups-to-cpu | FileCheck %s

// CHECK: memref.alloca() : memref<{{.*}}xf32>
// CHECK-LABEL: func.func @convolution
// CHECK-SAME: %[[IMAGE:.*]]: tensor<9x12xf32>, %[[TAPS:.*]]: tensor<3x3x8xf32>
// CHECK-NEXT: "flow.dispatch"(%[[IMAGE]], %[[TAPS]])
// CHECK-NEXT: return
func.func @convolution(%image: tensor<9x12xf32>, %taps: tensor<3x3x8xf32>) -> tensor<9x12x8xf32> {
  %padded = smartmem.view %image pieces [
    [1 to 10, 1 to 13] from 0 at (i, j) -> (i - 1, j - 1), [0 to 1, 0 to 14] fill 0.0 : f32,
    [10 to 11, 0 to 14] fill 0.0 : f32, [1 to 10, 0 to 1] fill 0.0 : f32, [1 to 10, 13 to 14] fill 0.0 : f32
  ] : (tensor<9x12xf32>) -> tensor<11x14xf32>
  %r = smartmem.group(%a = %padded, %b = %taps) : (tensor<11x14xf32>, tensor<3x3x8xf32>) -> tensor<9x12x8xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<9x12x8xf32>
    %start = linalg.fill ins(%zero : f32) outs(%e : tensor<9x12x8xf32>) -> tensor<9x12x8xf32>
    %p = linalg.generic {indexing_maps = [affine_map<(h, w, f, y, x) -> (h + y, w + x)>,
        affine_map<(h, w, f, y, x) -> (y, x, f)>, affine_map<(h, w, f, y, x) -> (h, w, f)>],
        iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
        ins(%a, %b : tensor<11x14xf32>, tensor<3x3x8xf32>) outs(%start : tensor<9x12x8xf32>) {
    ^bb0(%i: f32, %j: f32, %o: f32):
      %m = arith.mulf %i, %j : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    } -> tensor<9x12x8xf32>
    smartmem.yield %p : tensor<9x12x8xf32>
  }
  return %r : tensor<9x12x8xf32>
}
