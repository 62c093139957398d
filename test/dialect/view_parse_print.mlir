// One piece prints as a map, several as a list.
// RUN: smartmem-opt %s | FileCheck %s
// RUN: smartmem-opt %s --verify-roundtrip -o /dev/null
// RUN: smartmem-opt %s --mlir-print-op-generic | smartmem-opt | FileCheck %s

// CHECK-LABEL: func.func @one_map
func.func @one_map(%a: tensor<8x4xf32>) -> tensor<4x8xf32> {
  // CHECK: smartmem.view %{{.*}} at (d0, d1) -> (d1, d0) : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %0 = smartmem.view %a at (d0, d1) -> (d1, d0) : (tensor<8x4xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// The long form of one piece over everything prints short.
// CHECK-LABEL: func.func @long_form
func.func @long_form(%a: tensor<32xf32>) -> tensor<4x8xf32> {
  // CHECK: smartmem.view %{{.*}} at (d0, d1) -> (d0 * 8 + d1) : (tensor<32xf32>) -> tensor<4x8xf32>
  %0 = smartmem.view %a pieces [[0 to 4, 0 to 8] from 0 at (d0, d1) -> (d0 * 8 + d1)] : (tensor<32xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @several
func.func @several(%a: tensor<4x8xf32>, %b: tensor<2x8xf32>) -> tensor<8x8xf32> {
  // CHECK:      smartmem.view %{{.*}}, %{{.*}} pieces [
  // CHECK-NEXT:   [0 to 4, 0 to 8] from 0 at (d0, d1) -> (d0, d1),
  // CHECK-NEXT:   [4 to 6, 0 to 8] from 1 at (d0, d1) -> (d0 - 4, d1),
  // CHECK-NEXT:   [6 to 8, 0 to 8] fill 0.000000e+00 : f32
  // CHECK-NEXT: ] {note} : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  %0 = smartmem.view %a, %b pieces [
    [0 to 4, 0 to 8] from 0 at (d0, d1) -> (d0, d1),
    [4 to 6, 0 to 8] from 1 at (d0, d1) -> (d0 - 4, d1),
    [6 to 8, 0 to 8] fill 0.0 : f32
  ] {note} : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @no_source
func.func @no_source() -> tensor<2xi8> {
  // CHECK:      smartmem.view pieces [
  // CHECK-NEXT:   [0 to 2] fill 7 : i8
  // CHECK-NEXT: ] : () -> tensor<2xi8>
  %0 = smartmem.view pieces [[0 to 2] fill 7 : i8] : () -> tensor<2xi8>
  return %0 : tensor<2xi8>
}

// CHECK-LABEL: func.func @empty_result
func.func @empty_result(%a: tensor<4xf32>) -> tensor<0x4xf32> {
  // CHECK: smartmem.view %{{.*}} pieces [] : (tensor<4xf32>) -> tensor<0x4xf32>
  %0 = smartmem.view %a pieces [] : (tensor<4xf32>) -> tensor<0x4xf32>
  return %0 : tensor<0x4xf32>
}

// CHECK-LABEL: func.func @scalar
func.func @scalar(%a: tensor<4xf32>) -> tensor<f32> {
  // CHECK: smartmem.view %{{.*}} at () -> (3) : (tensor<4xf32>) -> tensor<f32>
  %0 = smartmem.view %a at () -> (3) : (tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
