// Constants in the resource section of the file.
// RUN: rm -f %t.npz
// RUN: smartmem-opt %s '--smartmem-externalize-constants{min-elements=1 archive=%t.npz}' | FileCheck %s
// RUN: %python -c "import numpy; print(numpy.load('%t.npz')['constant.0'].tolist())" | FileCheck %s --check-prefix=VALUES

// VALUES: [0.0, 1.0, 2.0, 4.0]
// CHECK: smartmem.parameter @constant.0 : tensor<4xf32>
// CHECK-NOT: dense_resource
func.func @f() -> tensor<4xf32> {
  %a = arith.constant dense_resource<weights> : tensor<4xf32>
  return %a : tensor<4xf32>
}

{-# dialect_resources: { builtin: { weights: "0x04000000000000000000803F0000004000008040" } } #-}
