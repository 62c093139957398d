// RUN: not smartmem-opt %s 2>&1 | FileCheck %s
// CHECK: parse_error.mlir:[[@LINE+1]]:1: error: custom op 'func.fnc' is unknown
func.fnc @f()
