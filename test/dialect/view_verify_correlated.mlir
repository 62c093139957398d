// Bounds are exact where dimensions occur more than once: interval arithmetic alone would refuse the first and
// accept none of the others for the wrong reason.
// RUN: smartmem-opt %s --split-input-file --verify-diagnostics

// d0 floordiv 4 * 4 + d0 mod 4 is d0, and d0 never exceeds 5.
func.func @inside(%a: tensor<6xf32>) -> tensor<6xf32> {
  %0 = smartmem.view %a at (d0) -> ((d0 floordiv 4) * 4 + d0 mod 4) : (tensor<6xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----

// The same for a box that is too large to enumerate.
func.func @inside_large(%a: tensor<100006xf32>) -> tensor<100006xf32> {
  %0 = smartmem.view %a at (d0) -> ((d0 floordiv 4) * 4 + d0 mod 4) : (tensor<100006xf32>) -> tensor<100006xf32>
  return %0 : tensor<100006xf32>
}

// -----

func.func @outside_large(%a: tensor<100005xf32>) {
  // expected-error@+1 {{reads index 100005 of dimension 0 of source 0, whose extent is 100005}}
  %0 = smartmem.view %a at (d0) -> ((d0 floordiv 4) * 4 + d0 mod 4) : (tensor<100005xf32>) -> tensor<100006xf32>
  return
}

// -----

// Only even indices are read: the last one is 14.
func.func @stride(%a: tensor<15xf32>) -> tensor<8xf32> {
  %0 = smartmem.view %a at (d0) -> ((d0 * 2) mod 16) : (tensor<15xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Values beyond 63 bits have no bounds.
func.func @overflow(%a: tensor<8xf32>) {
  // expected-error@+1 {{has an index that cannot be bounded: dimension 0 of affine_map<(d0) -> (d0 * 4611686018427387904)>}}
  %0 = smartmem.view %a at (d0) -> (d0 * 4611686018427387904) : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// A roll: index arithmetic that wraps.
func.func @roll(%a: tensor<7x7xf32>) -> tensor<7x7xf32> {
  %0 = smartmem.view %a at (d0, d1) -> ((d0 + 3) mod 7, (d1 + 3) mod 7) : (tensor<7x7xf32>) -> tensor<7x7xf32>
  return %0 : tensor<7x7xf32>
}
