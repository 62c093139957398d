// RUN: not smartmem-opt %s '--smartmem-externalize-constants{min-elements=2 archive=%t.missing/a.npz}' 2>&1 | FileCheck %s
// CHECK: error: smartmem-externalize-constants: cannot write {{.*}}.missing/a.npz: No such file or directory
func.func @f() -> tensor<2xf32> {
  %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %a : tensor<2xf32>
}
