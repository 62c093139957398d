// A weight packed in panels of 4 columns is stored that way; a broadcast is not, it would only make the archive larger.
// RUN: smartmem-opt %s --smartmem-fold-parameter-views | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK: %[[BIAS:.*]] = smartmem.parameter @bias : tensor<6xf32>
// CHECK: %[[PACKED:.*]] = smartmem.parameter @{{"w#[0-9a-f]+"}} {smartmem.view = "view 2x3x4 of (3x6) {{.*}}", smartmem.view_of = "w"} : tensor<2x3x4xf32>
// CHECK: %[[SPREAD:.*]] = smartmem.view %[[BIAS]]
// CHECK: return %[[PACKED]], %[[SPREAD]]
func.func @f() -> (tensor<2x3x4xf32>, tensor<9x6xf32>) {
  %w = smartmem.parameter @w : tensor<3x6xf32>
  %bias = smartmem.parameter @bias : tensor<6xf32>
  %packed = smartmem.view %w pieces [
    [0 to 1, 0 to 3, 0 to 4] from 0 at (d0, d1, d2) -> (d1, d2),
    [1 to 2, 0 to 3, 0 to 2] from 0 at (d0, d1, d2) -> (d1, d2 + 4),
    [1 to 2, 0 to 3, 2 to 4] fill 0.0 : f32
  ] : (tensor<3x6xf32>) -> tensor<2x3x4xf32>
  %spread = smartmem.view %bias at (d0, d1) -> (d1) : (tensor<6xf32>) -> tensor<9x6xf32>
  return %packed, %spread : tensor<2x3x4xf32>, tensor<9x6xf32>
}
