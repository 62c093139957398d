// Each constraint of a conversion.
// RUN: smartmem-opt %s --split-input-file --verify-diagnostics

func.func @shape(%a: tensor<4x8xf32>) {
  // expected-error@+1 {{may change only the encoding, got 'tensor<4x8xf32>' and 'tensor<8x4xf32>'}}
  %0 = smartmem.convert_layout %a : tensor<4x8xf32> -> tensor<8x4xf32>
  return
}

// -----

func.func @element_type(%a: tensor<4x8xf32>) {
  // expected-error@+1 {{may change only the encoding, got 'tensor<4x8xf32>' and 'tensor<4x8xf16>'}}
  %0 = smartmem.convert_layout %a : tensor<4x8xf32> -> tensor<4x8xf16>
  return
}

// -----

#sparse = #sparse_tensor.encoding<{map = (d0) -> (d0 : compressed)}>
func.func @foreign_encoding(%a: tensor<4xf32>) {
  // expected-error@+1 {{converts #smartmem.layout encodings, got #sparse_tensor.encoding}}
  %0 = smartmem.convert_layout %a : tensor<4xf32> -> tensor<4xf32, #sparse>
  return
}

// -----

func.func @empty_reason(%a: tensor<4xf32>) {
  // expected-error@+1 {{reason must not be empty}}
  %0 = smartmem.convert_layout %a reason "" : tensor<4xf32> -> tensor<4xf32>
  return
}
