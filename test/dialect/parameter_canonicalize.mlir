// Parameters are pure: equal ones merge, unused ones go, none folds to a constant.
// RUN: smartmem-opt %s --canonicalize --cse --sccp | FileCheck %s

// CHECK-LABEL: func.func @equal_keys_merge
func.func @equal_keys_merge() -> tensor<4xf32> {
  // CHECK-NEXT: %[[W:.*]] = smartmem.parameter @w
  // CHECK-NEXT: arith.addf %[[W]], %[[W]]
  %0 = smartmem.parameter @w : tensor<4xf32>
  %1 = smartmem.parameter @w : tensor<4xf32>
  %unused = smartmem.parameter @u : tensor<4xf32>
  %2 = arith.addf %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: func.func @other_keys_stay
func.func @other_keys_stay() -> tensor<4xf32> {
  // CHECK-DAG: %[[A:.*]] = smartmem.parameter @a
  // CHECK-DAG: %[[B:.*]] = smartmem.parameter @b
  // CHECK: arith.addf %[[A]], %[[B]]
  %0 = smartmem.parameter @a : tensor<4xf32>
  %1 = smartmem.parameter @b : tensor<4xf32>
  %2 = arith.addf %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
