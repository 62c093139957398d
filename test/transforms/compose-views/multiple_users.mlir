// A view with several users is composed into the views among them; the operation keeps it.
// RUN: smartmem-opt %s --smartmem-compose-views | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT: %[[T:.*]] = smartmem.view %arg0 at (d0, d1) -> (d1, d0) : (tensor<4x6xf32>) -> tensor<6x4xf32>
// CHECK-NEXT: smartmem.view %arg0 at (d0) -> (d0 mod 4, d0 floordiv 4) : (tensor<4x6xf32>) -> tensor<24xf32>
// CHECK-NEXT: smartmem.view %arg0 at (d0, d1) -> (d1, d0 + 2) : (tensor<4x6xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: math.exp %[[T]]
func.func @f(%x: tensor<4x6xf32>) -> (tensor<24xf32>, tensor<3x4xf32>, tensor<6x4xf32>) {
  %0 = smartmem.view %x at (d0, d1) -> (d1, d0) : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %1 = smartmem.view %0 at (d0) -> (d0 floordiv 4, d0 mod 4) : (tensor<6x4xf32>) -> tensor<24xf32>
  %2 = smartmem.view %0 at (d0, d1) -> (d0 + 2, d1) : (tensor<6x4xf32>) -> tensor<3x4xf32>
  %3 = math.exp %0 : tensor<6x4xf32>
  return %1, %2, %3 : tensor<24xf32>, tensor<3x4xf32>, tensor<6x4xf32>
}
