// The four operator classes as a discardable attribute.
// RUN: smartmem-opt %s | FileCheck %s
// RUN: smartmem-opt %s --verify-roundtrip -o /dev/null

// CHECK-LABEL: func.func @classes
func.func @classes(%a: tensor<4xf32>) {
  // CHECK: math.exp %{{.*}} {smartmem.op_class = #smartmem.op_class<ild_variable>}
  %0 = math.exp %a {smartmem.op_class = #smartmem.op_class<ild_variable>} : tensor<4xf32>
  // CHECK: math.exp %{{.*}} {smartmem.op_class = #smartmem.op_class<ili_variable>}
  %1 = math.exp %a {smartmem.op_class = #smartmem.op_class<ili_variable>} : tensor<4xf32>
  // CHECK: math.exp %{{.*}} {smartmem.op_class = #smartmem.op_class<ild_fixed>}
  %2 = math.exp %a {smartmem.op_class = #smartmem.op_class<ild_fixed>} : tensor<4xf32>
  // CHECK: math.exp %{{.*}} {smartmem.op_class = #smartmem.op_class<ili_fixed>}
  %3 = math.exp %a {smartmem.op_class = #smartmem.op_class<ili_fixed>} : tensor<4xf32>
  return
}
