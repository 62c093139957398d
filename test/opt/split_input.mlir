// RUN: smartmem-opt %s --split-input-file --canonicalize | FileCheck %s

// The same names in each part, and a context of its own for each.
// CHECK: func.func private @f(tensor<2xf32, #layout>)
// CHECK: // -----
// CHECK: func.func private @f(tensor<3xf32, #layout>)
// CHECK: // -----
// CHECK: func.func private @f(tensor<4xf32, #layout>)
func.func private @f(tensor<2xf32, #smartmem.layout<(d0) -> (d0), buffer>>)

// -----

func.func private @f(tensor<3xf32, #smartmem.layout<(d0) -> (d0), buffer>>)

// -----

func.func private @f(tensor<4xf32, #smartmem.layout<(d0) -> (d0), buffer>>)
