// Two elements in one place are refused, with an example where one is at hand.
// RUN: smartmem-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{affine_map<(d0, d1) -> (d0 + d1)> is not injective: elements [0, 1] and [1, 0] share a place}}
func.func private @sum(tensor<4x4xf32, #smartmem.layout<(d0, d1) -> (d0 + d1), buffer>>)

// -----

// expected-error@+1 {{is not injective: elements [0, 0] and [0, 1] share a place}}
func.func private @dropped_dimension(tensor<4x4xf32, #smartmem.layout<(d0, d1) -> (d0), buffer>>)

// -----

// Packing by 4 loses what `mod 3` does not tell.
// expected-error@+1 {{is not injective: elements [0] and [3] share a place}}
func.func private @remainder_too_small(tensor<16xf32, #smartmem.layout<(d0) -> (d0 floordiv 4, d0 mod 3), buffer>>)

// -----

// A stride one short of the extent.
// expected-error@+1 {{elements [0, 15] and [1, 0] share a place}}
func.func private @stride_too_small(tensor<16x16xf32, #smartmem.layout<(d0, d1) -> (d0 * 15 + d1), buffer>>)

// -----

// The rotation wraps around before the end of the row.
// expected-error@+1 {{is not injective}}
func.func private @swizzle_too_small(tensor<8x8xf32, #smartmem.layout<(d0, d1) -> (d0, (d0 + d1) mod 7), buffer>>)

// -----

// The first collision is far from the origin: elements 0 and 2^40 of a box that nobody enumerates.
// expected-error@+1 {{is not injective: there are more elements than physical coordinates}}
func.func private @far_away(tensor<1099511627777xi8, #smartmem.layout<(d0) -> (d0 mod 1099511627776), buffer>>)

// -----

// Here it takes integer programming: rows collide only at their ends, and there is room for all elements.
// expected-error@+1 {{is not injective: elements [99999, 100000] and [100000, 0] share a place}}
func.func private @long_rows(tensor<100001x100001xi8, #smartmem.layout<(d0, d1) -> (d0 * 200000 + d1 * 2), buffer>>)
