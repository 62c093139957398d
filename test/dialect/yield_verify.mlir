// RUN: smartmem-opt %s --verify-diagnostics

func.func @outside(%a: tensor<8xf32>) {
  // expected-error@+1 {{expects parent op 'smartmem.group'}}
  smartmem.yield %a : tensor<8xf32>
}
