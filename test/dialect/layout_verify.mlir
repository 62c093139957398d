// Each constraint of the attribute alone.
// RUN: smartmem-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{layout map must not have symbols}}
#symbols = #smartmem.layout<(d0)[s0] -> (d0 + s0), buffer>

// -----

// expected-error@+1 {{layout map must divide by positive constants only}}
#by_zero = #smartmem.layout<(d0) -> (d0 floordiv 0), buffer>

// -----

// expected-error@+1 {{layout map must divide by positive constants only}}
#negative = #smartmem.layout<(d0) -> (d0 mod -4), buffer>

// -----

// expected-error@+1 {{storage buffer needs at least 1 physical dimensions, got 0}}
#no_result = #smartmem.layout<(d0) -> (), buffer>

// -----

// expected-error@+1 {{storage texel_buffer needs at least 2 physical dimensions, got 1}}
#texel = #smartmem.layout<(d0) -> (d0), texel_buffer>

// -----

// expected-error@+1 {{storage image2d needs at least 3 physical dimensions, got 2}}
#image = #smartmem.layout<(d0) -> (d0 floordiv 4, d0 mod 4), image2d>

// -----

// expected-error@+1 {{storage image2d_array needs at least 4 physical dimensions, got 3}}
#array = #smartmem.layout<(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4), image2d_array>

// -----

// expected-error@+1 {{storage image3d needs at least 4 physical dimensions, got 3}}
#volume = #smartmem.layout<(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4), image3d>

// -----

// expected-error@+1 {{padding value must not be NaN}}
#nan = #smartmem.layout<(d0) -> (d0), buffer, pad = 0x7FF8000000000000>
