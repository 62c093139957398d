// RUN: smartmem-opt --allow-unregistered-dialect --smartmem-convert-to-iree %s | FileCheck %s

// A key that is used twice is one global, loaded twice.

// CHECK: "util.global"() {{.*}}initial_value = #flow.parameter.named<"model"::"qkv.weight"> : tensor<8x4xf32>{{.*}}sym_name = "parameter_qkv_weight"
// CHECK-NOT: "util.global"()
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = "util.global.load"() {global = @parameter_qkv_weight, is_immutable} : () -> tensor<8x4xf32>
// CHECK: %[[B:.*]] = "util.global.load"() {global = @parameter_qkv_weight, is_immutable} : () -> tensor<8x4xf32>
// CHECK: return %[[A]], %[[B]]
func.func @main() -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = smartmem.parameter @qkv.weight : tensor<8x4xf32>
  %1 = smartmem.parameter @qkv.weight : tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}
