// A map that neither digits, nor a small box, nor a small integer program settles is refused, at once.
// RUN: smartmem-opt %s --verify-diagnostics

// Four sums of two dimensions, each written as four digits. (It is injective; the way to show it is linear algebra.)
#undecided = #smartmem.layout<(d0, d1, d2, d3) -> (
  (d0 * 3 + d1) floordiv 8, ((d0 * 3 + d1) floordiv 4) mod 2, ((d0 * 3 + d1) floordiv 2) mod 2, (d0 * 3 + d1) mod 2,
  (d1 * 3 + d2) floordiv 8, ((d1 * 3 + d2) floordiv 4) mod 2, ((d1 * 3 + d2) floordiv 2) mod 2, (d1 * 3 + d2) mod 2,
  (d2 * 3 + d3) floordiv 8, ((d2 * 3 + d3) floordiv 4) mod 2, ((d2 * 3 + d3) floordiv 2) mod 2, (d2 * 3 + d3) mod 2,
  (d3 * 3 + d0) floordiv 8, ((d3 * 3 + d0) floordiv 4) mod 2, ((d3 * 3 + d0) floordiv 2) mod 2, (d3 * 3 + d0) mod 2), buffer>

// expected-error@+1 {{cannot prove that affine_map<}}
func.func private @undecided(tensor<256x256x256x256xi8, #undecided>)
