// Equal values of one type share a parameter; equal values of another type do not.
// RUN: rm -f %t.npz
// RUN: smartmem-opt %s '--smartmem-externalize-constants{min-elements=1 archive=%t.npz}' | FileCheck %s
// RUN: %python -c "import numpy; a = numpy.load('%t.npz'); print([(k, str(a[k].dtype), a[k].tolist()) for k in sorted(a)])" | FileCheck %s --check-prefix=VALUES

// VALUES: [('constant.0', 'float32', [1.0, 2.0]), ('constant.1', 'float16', [1.0, 2.0]), ('constant.2', 'bool', [True, False]), ('constant.3', 'int64', [-1, 2])]
func.func @f() -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf16>, tensor<2xi1>, tensor<2xi64>) {
  // CHECK: %[[A:.*]] = smartmem.parameter @constant.0 : tensor<2xf32>
  // CHECK: %[[B:.*]] = smartmem.parameter @constant.0 : tensor<2xf32>
  // CHECK: smartmem.parameter @constant.1 : tensor<2xf16>
  // CHECK: smartmem.parameter @constant.2 : tensor<2xi1>
  // CHECK: smartmem.parameter @constant.3 : tensor<2xi64>
  // CHECK: return %[[A]], %[[B]]
  %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf16>
  %d = arith.constant dense<[true, false]> : tensor<2xi1>
  %e = arith.constant dense<[-1, 2]> : tensor<2xi64>
  return %a, %b, %c, %d, %e : tensor<2xf32>, tensor<2xf32>, tensor<2xf16>, tensor<2xi1>, tensor<2xi64>
}
