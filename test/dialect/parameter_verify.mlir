// RUN: smartmem-opt %s --split-input-file --verify-diagnostics

func.func @empty_key() {
  // expected-error@+1 {{key must not be empty}}
  %0 = "smartmem.parameter"() {key = ""} : () -> tensor<4xf32>
  return
}

// -----

func.func @dynamic() {
  // expected-error@+1 {{must be statically shaped tensor of any type values, but got 'tensor<?xf32>'}}
  %0 = smartmem.parameter @w : tensor<?xf32>
  return
}

// -----

func.func @no_key() {
  // expected-error@+1 {{expected valid '@'-identifier for symbol name}}
  %0 = smartmem.parameter "w" : tensor<4xf32>
  return
}
