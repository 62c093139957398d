// A pass in Python runs on each part; one that fails does not keep the others from being processed.
// RUN: not smartmem-opt %s --split-input-file --smartmem-externalize-constants='min-elements=2' > %t.out 2> %t.err
// RUN: FileCheck %s < %t.out
// RUN: FileCheck %s --check-prefix=ERROR < %t.err

// CHECK: func.func private @first()
// CHECK: func.func private @third()
func.func private @first()

// -----

func.func @second() -> tensor<2xf32> {
  // ERROR: split_input_python_pass.mlir:[[@LINE+1]]:8: error: 'arith.constant' op smartmem-externalize-constants: no archive to keep the values of this constant; give archive=
  %0 = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func private @third()
