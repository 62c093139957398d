// RUN: smartmem-opt --allow-unregistered-dialect --smartmem-convert-to-iree %s | FileCheck %s

// Different keys that make the same symbol stay apart, and a symbol of the module is not taken.

// CHECK-DAG: #flow.parameter.named<"model"::"a.b">{{.*}}sym_name = "parameter_a_b"
// CHECK-DAG: #flow.parameter.named<"model"::"a/b">{{.*}}sym_name = "parameter_a_b_1"
// CHECK-DAG: #flow.parameter.named<"model"::"main">{{.*}}sym_name = "parameter_main_1"
// CHECK: func.func @parameter_main
func.func @parameter_main() -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %0 = smartmem.parameter @a.b : tensor<2xf32>
  %1 = smartmem.parameter @"a/b" : tensor<2xf32>
  %2 = smartmem.parameter @main : tensor<2xf32>
  return %0, %1, %2 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
