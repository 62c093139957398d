// RUN: rm -f %t.npz
// RUN: smartmem-opt %s '--smartmem-externalize-constants{min-elements=4 archive=%t.npz}' | FileCheck %s
// RUN: %python -c "import numpy; a = numpy.load('%t.npz'); print(sorted(a), a['constant.0'].tolist(), a['constant.0'].dtype)" | FileCheck %s --check-prefix=VALUES

// VALUES: ['constant.0'] {{\[\[}}1.5, -2.0], [3.0, 4.0]] float32
// CHECK-LABEL: func.func @f
func.func @f(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  // CHECK: %[[W:.*]] = smartmem.parameter @constant.0 : tensor<2x2xf32>
  // CHECK: arith.mulf %{{.*}}, %[[W]]
  %w = arith.constant dense<[[1.5, -2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %0 = arith.mulf %x, %w : tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
