// A map that neither digits, nor equations, nor a small box, nor a small integer program settles is refused, at once.
// RUN: smartmem-opt %s --verify-diagnostics

#undecided = #smartmem.layout<(d0, d1, d2, d3) -> ((d0 * 4 + d1) floordiv 8, (d0 + d1 floordiv 4) mod 2, d1 mod 4, d0 * 3 + d2 * 7 + d3 * 4097, d1), buffer>

// expected-error@+1 {{cannot prove that affine_map<(d0, d1, d2, d3) -> }}
func.func private @undecided(tensor<3x8x4097x4097xf32, #undecided>)
