// Padding values print exactly; zero may be written and is kept apart from "not said".
// RUN: smartmem-opt %s --mlir-print-local-scope | FileCheck %s
// RUN: smartmem-opt %s --verify-roundtrip -o /dev/null

// CHECK: @negative_infinity(tensor<4x49xf32, #smartmem.layout<(d0, d1) -> (d0, d1 mod 52), buffer, pad = -inf>>)
func.func private @negative_infinity(tensor<4x49xf32, #smartmem.layout<(d0, d1) -> (d0, d1 mod 52), buffer, pad = -inf>>)
// CHECK: @infinity(tensor<4x49xf16, #smartmem.layout<(d0, d1) -> (d0, d1 mod 52), buffer, pad = inf>>)
func.func private @infinity(tensor<4x49xf16, #smartmem.layout<(d0, d1) -> (d0, d1 mod 52), buffer, pad = inf>>)
// CHECK: @zero(tensor<4x49xf32, #smartmem.layout<(d0, d1) -> (d0, d1 mod 52), buffer, pad = 0.000000e+00>>)
func.func private @zero(tensor<4x49xf32, #smartmem.layout<(d0, d1) -> (d0, d1 mod 52), buffer, pad = 0.0>>)
// CHECK: @negative(tensor<4x49xi8, #smartmem.layout<(d0, d1) -> (d0, d1 mod 52), buffer, pad = -1.280000e+02>>)
func.func private @negative(tensor<4x49xi8, #smartmem.layout<(d0, d1) -> (d0, d1 mod 52), buffer, pad = -128.0>>)
// CHECK: @unsigned(tensor<4x49xui8, #smartmem.layout<(d0, d1) -> (d0, d1 mod 52), buffer, pad = 2.550000e+02>>)
func.func private @unsigned(tensor<4x49xui8, #smartmem.layout<(d0, d1) -> (d0, d1 mod 52), buffer, pad = 255.0>>)
