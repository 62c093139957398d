// RUN: smartmem-opt %s --verify-diagnostics

func.func @f(%a: tensor<4xf32>) {
  // expected-error@+1 {{may change only the encoding}}
  %0 = smartmem.convert_layout %a : tensor<4xf32> -> tensor<5xf32>
  return
}
