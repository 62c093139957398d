// RUN: smartmem-opt %s --split-input-file --verify-diagnostics

func.func @string(%a: tensor<4xf32>) {
  // expected-error@+1 {{expects 'smartmem.op_class' to be an #smartmem.op_class, got "ild_fixed"}}
  %0 = math.exp %a {smartmem.op_class = "ild_fixed"} : tensor<4xf32>
  return
}

// -----

func.func @unknown(%a: tensor<4xf32>) {
  // expected-error@+2 {{expected ::mlir::smartmem::OpClass to be one of: ild_variable, ili_variable, ild_fixed, ili_fixed}}
  // expected-error@+1 {{failed to parse}}
  %0 = math.exp %a {smartmem.op_class = #smartmem.op_class<fixed>} : tensor<4xf32>
  return
}
