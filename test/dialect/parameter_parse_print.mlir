// Keys are any strings; the last part of a key names the value where it can.
// RUN: smartmem-opt %s | FileCheck %s
// RUN: smartmem-opt %s --verify-roundtrip -o /dev/null

#packed = #smartmem.layout<(d0, d1) -> (d0 floordiv 8, d1, d0 mod 8), buffer>

// CHECK-LABEL: func.func @keys
func.func @keys() {
  // CHECK: %weight = smartmem.parameter @"layers.0/attn/qkv.weight" : tensor<288x96xf32>
  %0 = smartmem.parameter @"layers.0/attn/qkv.weight" : tensor<288x96xf32>
  // CHECK: %bias = smartmem.parameter @bias : tensor<f16>
  %1 = smartmem.parameter @bias : tensor<f16>
  // CHECK: %{{[0-9]+}} = smartmem.parameter @"onnx::MatMul_\22\C3\A9\22 17" : tensor<4xi8>
  %2 = smartmem.parameter @"onnx::MatMul_\22\C3\A9\22 17" : tensor<4xi8>
  // CHECK: smartmem.parameter @packed : tensor<64x32xf32, #layout>
  %3 = smartmem.parameter @packed : tensor<64x32xf32, #packed>
  // CHECK: smartmem.parameter @"0" {note = "kept"} : tensor<0x4xf32>
  %4 = smartmem.parameter @"0" {note = "kept"} : tensor<0x4xf32>
  return
}
