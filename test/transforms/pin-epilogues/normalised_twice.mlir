// A normalisation of a normalisation: the first one is a kernel, sum included.
// RUN: smartmem-opt %s --smartmem-pin-epilogues | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK: %[[N:.*]] = smartmem.group(%[[X:.*]] = %arg0)
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%[[X]]
// CHECK: arith.divf
// CHECK: linalg.generic {{.*}}"reduction"]}
// CHECK: %[[Q:.*]] = linalg.generic {{.*}}["parallel", "parallel"]}
// CHECK: smartmem.yield %[[Q]]
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%[[N]]
func.func @f(%x: tensor<8x3xf32>) -> (tensor<8x3xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x3xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x3xf32>) outs(%start : tensor<8xf32>) {
  ^bb0(%l: f32, %o: f32):
    %t = arith.addf %l, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<8x3xf32>, tensor<8xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %t = arith.divf %l, %r : f32
    linalg.yield %t : f32
  } -> tensor<8x3xf32>
  %squares = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%d : tensor<8x3xf32>) outs(%start : tensor<8xf32>) {
  ^bb0(%l: f32, %o: f32):
    %q = arith.mulf %l, %l : f32
    %t = arith.addf %q, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %n = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%d, %squares : tensor<8x3xf32>, tensor<8xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %t = arith.divf %l, %r : f32
    linalg.yield %t : f32
  } -> tensor<8x3xf32>
  %again = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%n : tensor<8x3xf32>) outs(%start : tensor<8xf32>) {
  ^bb0(%l: f32, %o: f32):
    %t = arith.addf %l, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %n, %again : tensor<8x3xf32>, tensor<8xf32>
}
