// Each constraint of a piece alone.
// RUN: smartmem-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{box bounds must be 0 <= lower < upper, got 4 to 4}}
module attributes {test.p = #smartmem.piece<[4 to 4] from 0 at (d0) -> (d0)>} {}

// -----

// expected-error@+1 {{box bounds must be 0 <= lower < upper, got -1 to 4}}
module attributes {test.p = #smartmem.piece<[-1 to 4] from 0 at (d0) -> (d0)>} {}

// -----

// expected-error@+1 {{piece map must not have symbols}}
module attributes {test.p = #smartmem.piece<[0 to 4] from 0 at (d0)[s0] -> (d0 + s0)>} {}

// -----

// expected-error@+1 {{piece map takes 2 dimensions but the box has 1}}
module attributes {test.p = #smartmem.piece<[0 to 4] from 0 at (d0, d1) -> (d0)>} {}

// -----

// expected-error@+1 {{piece map must divide by positive constants only}}
module attributes {test.p = #smartmem.piece<[0 to 4] from 0 at (d0) -> (d0 ceildiv 0)>} {}

// -----

// expected-error@+1 {{source index must not be negative, got -1}}
module attributes {test.p = #smartmem.piece<[0 to 4] from -1 at (d0) -> (d0)>} {}

// -----

// expected-error@+1 {{expected 'from' or 'fill'}}
module attributes {test.p = #smartmem.piece<[0 to 4] read 0>} {}

// -----

// expected-error@+1 {{piece must be filled with a float or integer, got dense<0>}}
module attributes {test.p = #smartmem.piece<[0 to 4] fill dense<0> : tensor<4xi8>>} {}
