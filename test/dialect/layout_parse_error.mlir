// What the parser says about text that is not a layout.
// RUN: smartmem-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{unknown storage 'texture', expected buffer, texel_buffer, image2d, image2d_array or image3d}}
#storage = #smartmem.layout<(d0) -> (d0), texture>

// -----

// expected-error@+1 {{expected a number, inf or -inf}}
#pad = #smartmem.layout<(d0) -> (d0), buffer, pad = none>

// -----

// expected-error@+1 {{expected 'pad'}}
#keyword = #smartmem.layout<(d0) -> (d0), buffer, padding = 0.0>

// -----

// expected-error@+1 {{expected ','}}
#no_storage = #smartmem.layout<(d0) -> (d0)>
