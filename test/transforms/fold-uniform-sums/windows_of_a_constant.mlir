// Windows of two over a tensor of -0.5, squared and summed from 1: 1 + 2 * 0.25. A maximum is the number itself. What is read
// from an argument stays.
// RUN: smartmem-opt %s --smartmem-fold-uniform-sums --canonicalize | FileCheck %s

#window = affine_map<(d0, d1) -> (d0 + d1)>
#tap = affine_map<(d0, d1) -> (d1)>
#place = affine_map<(d0, d1) -> (d0)>
#place1 = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @windows
// CHECK: %[[SUM:.*]] = arith.constant 1.500000e+00 : f32
// CHECK: %[[FILLED:.*]] = linalg.fill ins(%[[SUM]] : f32)
// CHECK-NOT: linalg.generic
// CHECK: return %[[FILLED]]
func.func @windows() -> tensor<3xf32> {
  %half = arith.constant -0.5 : f32
  %one = arith.constant 1.0 : f32
  %e4 = tensor.empty() : tensor<4xf32>
  %x = linalg.fill ins(%half : f32) outs(%e4 : tensor<4xf32>) -> tensor<4xf32>
  %e3 = tensor.empty() : tensor<3xf32>
  %start = linalg.fill ins(%one : f32) outs(%e3 : tensor<3xf32>) -> tensor<3xf32>
  %taps = tensor.empty() : tensor<2xf32>
  %r = linalg.generic {indexing_maps = [#window, #tap, #place], iterator_types = ["parallel", "reduction"]}
      ins(%x, %taps : tensor<4xf32>, tensor<2xf32>) outs(%start : tensor<3xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %square = arith.mulf %a, %a : f32
    %s = arith.addf %sum, %square : f32
    linalg.yield %s : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// CHECK-LABEL: func.func @maximum
// CHECK: %[[MOST:.*]] = arith.constant -5.000000e-01 : f32
// CHECK: linalg.fill ins(%[[MOST]] : f32)
// CHECK-NOT: linalg.generic
func.func @maximum() -> tensor<3xf32> {
  %half = arith.constant -0.5 : f32
  %low = arith.constant -4.0 : f32
  %e4 = tensor.empty() : tensor<4xf32>
  %x = linalg.fill ins(%half : f32) outs(%e4 : tensor<4xf32>) -> tensor<4xf32>
  %e3 = tensor.empty() : tensor<3xf32>
  %start = linalg.fill ins(%low : f32) outs(%e3 : tensor<3xf32>) -> tensor<3xf32>
  %taps = tensor.empty() : tensor<2xf32>
  %r = linalg.generic {indexing_maps = [#window, #tap, #place], iterator_types = ["parallel", "reduction"]}
      ins(%x, %taps : tensor<4xf32>, tensor<2xf32>) outs(%start : tensor<3xf32>) {
  ^bb0(%a: f32, %b: f32, %most: f32):
    %m = arith.maximumf %most, %a : f32
    linalg.yield %m : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// What is gathered from a tensor of one number is that number wherever the positions are.
// CHECK-LABEL: func.func @gathered
// CHECK: %[[SUM:.*]] = arith.constant -1.000000e+00 : f32
// CHECK: linalg.fill ins(%[[SUM]] : f32)
// CHECK-NOT: linalg.generic
func.func @gathered(%at: tensor<4xi64>) -> tensor<3xf32> {
  %zero = arith.constant 0.0 : f32
  %x = smartmem.view pieces [[0 to 5] fill -5.000000e-01 : f32] : () -> tensor<5xf32>
  %e4 = tensor.empty() : tensor<4xf32>
  %g = linalg.generic {indexing_maps = [#place1, #place1], iterator_types = ["parallel"]}
      ins(%at : tensor<4xi64>) outs(%e4 : tensor<4xf32>) {
  ^bb0(%i: i64, %o: f32):
    %j = arith.index_cast %i : i64 to index
    %v = tensor.extract %x[%j] : tensor<5xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %e3 = tensor.empty() : tensor<3xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e3 : tensor<3xf32>) -> tensor<3xf32>
  %taps = tensor.empty() : tensor<2xf32>
  %r = linalg.generic {indexing_maps = [#window, #tap, #place], iterator_types = ["parallel", "reduction"]}
      ins(%g, %taps : tensor<4xf32>, tensor<2xf32>) outs(%start : tensor<3xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %s = arith.addf %sum, %a : f32
    linalg.yield %s : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// CHECK-LABEL: func.func @argument
// CHECK: linalg.generic
func.func @argument(%x: tensor<4xf32>) -> tensor<3xf32> {
  %zero = arith.constant 0.0 : f32
  %e3 = tensor.empty() : tensor<3xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e3 : tensor<3xf32>) -> tensor<3xf32>
  %taps = tensor.empty() : tensor<2xf32>
  %r = linalg.generic {indexing_maps = [#window, #tap, #place], iterator_types = ["parallel", "reduction"]}
      ins(%x, %taps : tensor<4xf32>, tensor<2xf32>) outs(%start : tensor<3xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %s = arith.addf %sum, %a : f32
    linalg.yield %s : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}
