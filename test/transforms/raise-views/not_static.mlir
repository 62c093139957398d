// Sizes that are known at run time only, tensors without elements, and tensors that have a layout already.
// RUN: smartmem-opt %s --smartmem-raise-views | FileCheck %s --implicit-check-not=smartmem.view

// CHECK-LABEL: func.func @dynamic
func.func @dynamic(%x: tensor<?x8xf32>) -> tensor<?xf32> {
  // CHECK: tensor.collapse_shape
  %0 = tensor.collapse_shape %x [[0, 1]] : tensor<?x8xf32> into tensor<?xf32>
  return %0 : tensor<?xf32>
}

// CHECK-LABEL: func.func @empty
func.func @empty(%x: tensor<0x8xf32>) -> tensor<0xf32> {
  // CHECK: tensor.collapse_shape
  %0 = tensor.collapse_shape %x [[0, 1]] : tensor<0x8xf32> into tensor<0xf32>
  return %0 : tensor<0xf32>
}

#packed = #smartmem.layout<(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4), buffer>
#line = #smartmem.layout<(d0) -> (d0), buffer>
// CHECK-LABEL: func.func @encoded
func.func @encoded(%x: tensor<2x8xf32, #packed>) -> tensor<16xf32, #line> {
  // CHECK: tensor.collapse_shape
  %0 = tensor.collapse_shape %x [[0, 1]] : tensor<2x8xf32, #packed> into tensor<16xf32, #line>
  return %0 : tensor<16xf32, #line>
}
