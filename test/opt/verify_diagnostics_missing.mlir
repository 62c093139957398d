// An expectation that is not met fails the run.
// RUN: not smartmem-opt %s --verify-diagnostics 2>&1 | FileCheck %s

func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: verify_diagnostics_missing.mlir:[[@LINE+1]]:6: error: expected error "may change only the encoding" was not produced
  // expected-error@+1 {{may change only the encoding}}
  %0 = smartmem.convert_layout %a : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
