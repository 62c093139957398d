// Each constraint of a group and its terminator.
// RUN: smartmem-opt %s --split-input-file --verify-diagnostics

func.func @argument_types(%a: tensor<8xf32>) {
  // expected-error@+1 {{body arguments ('tensor<4xf32>') do not match the operands ('tensor<8xf32>')}}
  "smartmem.group"(%a) ({
  ^bb0(%x: tensor<4xf32>):
    smartmem.yield
  }) : (tensor<8xf32>) -> ()
  return
}

// -----

func.func @argument_count(%a: tensor<8xf32>) {
  // expected-error@+1 {{body arguments () do not match the operands ('tensor<8xf32>')}}
  "smartmem.group"(%a) ({
    smartmem.yield
  }) : (tensor<8xf32>) -> ()
  return
}

// -----

func.func @yield_types(%a: tensor<8xf32>) {
  %r = smartmem.group(%x = %a) : (tensor<8xf32>) -> tensor<4xf32> {
    // expected-error@+1 {{yields ('tensor<8xf32>') but the group gives ('tensor<4xf32>')}}
    smartmem.yield %x : tensor<8xf32>
  }
  return
}

// -----

func.func @other_terminator(%a: tensor<8xf32>) {
  // expected-error@+1 {{body must end in smartmem.yield}}
  smartmem.group() : () -> () {
    llvm.unreachable
  }
  return
}

// -----

func.func @nested(%a: tensor<8xf32>) {
  smartmem.group(%x = %a) : (tensor<8xf32>) -> () {
    // expected-error@+1 {{must not be inside a smartmem.group}}
    smartmem.group(%y = %x) : (tensor<8xf32>) -> () {
      smartmem.yield
    }
    smartmem.yield
  }
  return
}

// -----

func.func @parameter() {
  smartmem.group() : () -> () {
    // expected-error@+1 {{must not be inside a smartmem.group}}
    %w = smartmem.parameter @w : tensor<4xf32>
    smartmem.yield
  }
  return
}

// -----

func.func @hidden_read(%a: tensor<8xf32>) {
  // expected-note@+1 {{required by region isolation constraints}}
  %r = smartmem.group() : () -> tensor<8xf32> {
    // expected-error@+1 {{using value defined outside the region}}
    %s = math.exp %a : tensor<8xf32>
    smartmem.yield %s : tensor<8xf32>
  }
  return
}

// -----

func.func @operand_count(%a: tensor<8xf32>) {
  // expected-error@+1 {{number of operands and types do not match: got 1 operands and 2 types}}
  smartmem.group(%x = %a) : (tensor<8xf32>, tensor<8xf32>) -> () {
    smartmem.yield
  }
  return
}
