// RUN: smartmem-opt %s | FileCheck %s
// RUN: smartmem-opt %s --verify-roundtrip -o /dev/null
// RUN: smartmem-opt %s --mlir-print-op-generic | smartmem-opt | FileCheck %s

// CHECK-LABEL: func.func @groups
// CHECK-SAME: %[[A:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>
func.func @groups(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK:      %[[G:.*]]:2 = smartmem.group(%[[X:.*]] = %[[A]], %[[Y:.*]] = %[[B]]) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {note} {
  // CHECK-NEXT:   %[[S:.*]] = arith.addf %[[X]], %[[Y]]
  // CHECK-NEXT:   smartmem.yield %[[S]], %[[Y]] : tensor<8xf32>, tensor<8xf32>
  // CHECK-NEXT: }
  %r:2 = smartmem.group(%x = %a, %y = %b) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {note} {
    %s = arith.addf %x, %y : tensor<8xf32>
    smartmem.yield %s, %y : tensor<8xf32>, tensor<8xf32>
  }
  // CHECK:      smartmem.group() : () -> () {
  // CHECK-NEXT:   smartmem.yield
  // CHECK-NEXT: }
  smartmem.group() : () -> () {
    smartmem.yield
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}
