// Two products of one tensor, each too large for a chain, are one launch of two results. A product that reads another
// one's result and is small joins it: what is between them is on the stack.
// RUN: smartmem-opt %s --allow-unregistered-dialect '--smartmem-lower-groups-to-cpu=lanes=4 registers=16' | FileCheck %s

// CHECK: func.func @contraction_1x8x8_contraction_1x8x8(
// CHECK: memref.alloca() : memref<8xf32>
// CHECK: func.func @contraction_96x96x96_contraction_96x96x96(
// CHECK: scf.if

// CHECK-LABEL: func.func @beside
// CHECK: %[[R:.*]]:2 = "flow.dispatch"(%arg0, {{.*}}, {{.*}}) {entry_points = [@contraction_96x96x96_contraction_96x96x96::
// CHECK-NOT: flow.dispatch
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @beside(%x: tensor<96x96xf32>) -> (tensor<96x96xf32>, tensor<96x96xf32>) {
  %w = smartmem.parameter @w : tensor<96x96xf32>
  %a = smartmem.group(%p = %x, %q = %w) : (tensor<96x96xf32>, tensor<96x96xf32>) -> tensor<96x96xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<96x96xf32>
    %s = linalg.fill ins(%zero : f32) outs(%e : tensor<96x96xf32>) -> tensor<96x96xf32>
    %m = linalg.matmul ins(%p, %q : tensor<96x96xf32>, tensor<96x96xf32>) outs(%s : tensor<96x96xf32>) -> tensor<96x96xf32>
    smartmem.yield %m : tensor<96x96xf32>
  }
  %v = smartmem.parameter @v : tensor<96x96xf32>
  %b = smartmem.group(%p = %x, %q = %v) : (tensor<96x96xf32>, tensor<96x96xf32>) -> tensor<96x96xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<96x96xf32>
    %s = linalg.fill ins(%zero : f32) outs(%e : tensor<96x96xf32>) -> tensor<96x96xf32>
    %m = linalg.matmul ins(%p, %q : tensor<96x96xf32>, tensor<96x96xf32>) outs(%s : tensor<96x96xf32>) -> tensor<96x96xf32>
    smartmem.yield %m : tensor<96x96xf32>
  }
  return %a, %b : tensor<96x96xf32>, tensor<96x96xf32>
}

// CHECK-LABEL: func.func @after
// CHECK: %[[S:.*]] = "flow.dispatch"(%arg0, {{.*}}) {entry_points = [@contraction_1x8x8_contraction_1x8x8::
// CHECK-NOT: flow.dispatch
// CHECK: return %[[S]]
func.func @after(%x: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %w = smartmem.parameter @small : tensor<8x8xf32>
  %a = smartmem.group(%p = %x, %q = %w) : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<1x8xf32>
    %s = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8xf32>) -> tensor<1x8xf32>
    %m = linalg.matmul ins(%p, %q : tensor<1x8xf32>, tensor<8x8xf32>) outs(%s : tensor<1x8xf32>) -> tensor<1x8xf32>
    smartmem.yield %m : tensor<1x8xf32>
  }
  %b = smartmem.group(%p = %a, %q = %w) : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<1x8xf32>
    %s = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8xf32>) -> tensor<1x8xf32>
    %m = linalg.matmul ins(%p, %q : tensor<1x8xf32>, tensor<8x8xf32>) outs(%s : tensor<1x8xf32>) -> tensor<1x8xf32>
    smartmem.yield %m : tensor<1x8xf32>
  }
  return %b : tensor<1x8xf32>
}
