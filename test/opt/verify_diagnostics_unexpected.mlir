// A diagnostic that nothing expects fails the run, as does one with another text.
// RUN: not smartmem-opt %s --verify-diagnostics --split-input-file 2>&1 | FileCheck %s

func.func @nothing_expected(%a: tensor<4xf32>) {
  // CHECK: error: unexpected error: 'smartmem.convert_layout' op may change only the encoding
  %0 = smartmem.convert_layout %a : tensor<4xf32> -> tensor<5xf32>
  return
}

// -----

func.func @another_text(%a: tensor<4xf32>) {
  // CHECK: error: unexpected error: 'smartmem.convert_layout' op may change only the encoding
  // expected-error@+1 {{may change only the shape}}
  %0 = smartmem.convert_layout %a : tensor<4xf32> -> tensor<5xf32>
  return
}
