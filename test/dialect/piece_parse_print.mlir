// Pieces as attributes on their own.
// RUN: smartmem-opt %s | FileCheck %s

// CHECK: read = #smartmem.piece<[1 to 4, 0 to 8] from 2 at (d0, d1) -> (d1 floordiv 2, d0 - 1)>
// CHECK-SAME: scalar = #smartmem.piece<[] from 0 at () -> ()>
// CHECK-SAME: value = #smartmem.piece<[0 to 2] fill -1 : i8>
module attributes {
  test.read = #smartmem.piece<[1 to 4, 0 to 8] from 2 at (d0, d1) -> (d1 floordiv 2, d0 - 1)>,
  test.scalar = #smartmem.piece<[] from 0 at () -> ()>,
  test.value = #smartmem.piece<[0 to 2] fill -1 : i8>
} {}
