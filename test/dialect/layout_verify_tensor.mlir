// Each constraint on the tensor that carries a layout, but injectivity.
// RUN: smartmem-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{layout maps 2 dimensions but the tensor has rank 3}}
func.func private @rank(tensor<2x3x4xf32, #smartmem.layout<(d0, d1) -> (d1, d0), buffer>>)

// -----

// expected-error@+1 {{layout needs a tensor of static shape}}
func.func private @dynamic(tensor<?x4xf32, #smartmem.layout<(d0, d1) -> (d1, d0), buffer>>)

// -----

// expected-error@+1 {{physical coordinate 0 of affine_map<(d0) -> (d0 - 3)> can be -3, which is negative}}
func.func private @negative(tensor<4xf32, #smartmem.layout<(d0) -> (d0 - 3), buffer>>)

// -----

// expected-error@+1 {{physical size of affine_map<(d0, d1) -> (d0 * 4294967296, d1 * 4294967296)> does not fit 63 bits}}
func.func private @overflow(tensor<2x2xf32, #smartmem.layout<(d0, d1) -> (d0 * 4294967296, d1 * 4294967296), buffer>>)

// -----

// expected-error@+1 {{cannot bound physical coordinate 0}}
func.func private @coordinate_overflow(tensor<8xf32, #smartmem.layout<(d0) -> (d0 * 4611686018427387904), buffer>>)

// -----

// expected-error@+1 {{cannot bound physical coordinate 0}}
func.func private @nested_overflow(tensor<8xf32, #smartmem.layout<(d0) -> ((d0 * 4611686018427387904) floordiv 2), buffer>>)

// -----

// expected-error@+1 {{storage image2d needs a last physical dimension of extent 4, got 8}}
func.func private @lane_too_wide(tensor<16x16xf32, #smartmem.layout<(d0, d1) -> (d0, d1 floordiv 8, d1 mod 8), image2d>>)

// -----

// expected-error@+1 {{storage texel_buffer needs a last physical dimension of extent 4, got 3}}
func.func private @lane_too_narrow(tensor<16x3xf32, #smartmem.layout<(d0, d1) -> (d0, d1), texel_buffer>>)

// -----

// expected-error@+1 {{storage image3d holds 8, 16 or 32-bit integers, f16 or f32, got 'f64'}}
func.func private @no_format(tensor<1x8x8xf64, #smartmem.layout<(d0, d1, d2) -> (0, d0, d1, d2 floordiv 4, d2 mod 4), image3d>>)

// -----

// expected-error@+1 {{padding value 1.000000e+05 is not representable in 'f16'}}
func.func private @pad_f16(tensor<4xf16, #smartmem.layout<(d0) -> (d0 mod 8), buffer, pad = 100000.0>>)

// -----

// expected-error@+1 {{padding value 2.560000e+02 is not representable in 'i8'}}
func.func private @pad_range(tensor<4xi8, #smartmem.layout<(d0) -> (d0 mod 8), buffer, pad = 256.0>>)

// -----

// expected-error@+1 {{padding value -1.000000e+00 is not representable in 'ui8'}}
func.func private @pad_sign(tensor<4xui8, #smartmem.layout<(d0) -> (d0 mod 8), buffer, pad = -1.0>>)

// -----

// expected-error@+1 {{padding value 1.000000e+00 is not representable in 'index'}}
func.func private @pad_index(tensor<4xindex, #smartmem.layout<(d0) -> (d0 mod 8), buffer, pad = 1.0>>)

// -----

// expected-error@+1 {{is not representable in 'i32'}}
func.func private @pad_infinity(tensor<4xi32, #smartmem.layout<(d0) -> (d0 mod 8), buffer, pad = -inf>>)
