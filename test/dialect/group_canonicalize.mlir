// RUN: smartmem-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @unread_operand
// CHECK-SAME: %[[A:.*]]: tensor<8xf32>, %{{.*}}: tensor<8xf32>
func.func @unread_operand(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: smartmem.group(%{{.*}} = %[[A]]) : (tensor<8xf32>) -> tensor<8xf32>
  %r = smartmem.group(%y = %b, %x = %a) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    %s = math.exp %x : tensor<8xf32>
    smartmem.yield %s : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// CHECK-LABEL: func.func @operand_twice
func.func @operand_twice(%a: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: smartmem.group(%[[X:.*]] = %{{.*}}) : (tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: arith.addf %[[X]], %[[X]]
  %r = smartmem.group(%x = %a, %y = %a) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    %s = arith.addf %x, %y : tensor<8xf32>
    smartmem.yield %s : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// CHECK-LABEL: func.func @unused_result
func.func @unused_result(%a: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: %[[R:.*]] = smartmem.group(%[[X:.*]] = %{{.*}}) : (tensor<8xf32>) -> tensor<8xf32> attributes {note} {
  // CHECK-NEXT: %[[T:.*]] = math.tanh %[[X]]
  // CHECK-NEXT: smartmem.yield %[[T]]
  // CHECK: return %[[R]]
  %r:2 = smartmem.group(%x = %a) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {note} {
    %s = math.exp %x : tensor<8xf32>
    %t = math.tanh %x : tensor<8xf32>
    smartmem.yield %s, %t : tensor<8xf32>, tensor<8xf32>
  }
  return %r#1 : tensor<8xf32>
}

// CHECK-LABEL: func.func @pass_through
// CHECK-SAME: %[[A:.*]]: tensor<8xf32>
func.func @pass_through(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK: %[[R:.*]] = smartmem.group
  // CHECK: return %[[A]], %[[R]]
  %r:2 = smartmem.group(%x = %a) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %s = math.exp %x : tensor<8xf32>
    smartmem.yield %x, %s : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @nothing_left
func.func @nothing_left(%a: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: return
  %r = smartmem.group(%x = %a) : (tensor<8xf32>) -> tensor<8xf32> {
    smartmem.yield %x : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// A group with effects stays, though nobody uses its result.
// CHECK-LABEL: func.func @effects
func.func private @print(tensor<8xf32>)
func.func @effects(%a: tensor<8xf32>) {
  // CHECK: smartmem.group(%[[X:.*]] = %{{.*}}) : (tensor<8xf32>) -> () {
  // CHECK-NEXT: call @print(%[[X]])
  // CHECK-NEXT: smartmem.yield
  %r = smartmem.group(%x = %a) : (tensor<8xf32>) -> tensor<8xf32> {
    func.call @print(%x) : (tensor<8xf32>) -> ()
    smartmem.yield %x : tensor<8xf32>
  }
  return
}
