// Operations of dialects that MLIR does not know: refused, unless asked for.
// RUN: not smartmem-opt %s 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: smartmem-opt %s --allow-unregistered-dialect --smartmem-fold-layouts | FileCheck %s
// REFUSED: operation being parsed with an unregistered dialect
// CHECK: "flow.dispatch.region"()
func.func @f() {
  "flow.dispatch.region"() : () -> ()
  return
}
