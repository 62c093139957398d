// Exponentials of a softmax follow a maximum: a group would cut the softmax in two.
// RUN: smartmem-opt %s --smartmem-pin-epilogues | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK-NOT: smartmem.group
func.func @f(%x: tensor<8x3xf32>) -> (tensor<8x3xf32>, tensor<8xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x3xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %start = linalg.fill ins(%low : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x3xf32>) outs(%start : tensor<8xf32>) {
  ^bb0(%l: f32, %o: f32):
    %t = arith.maximumf %l, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max : tensor<8x3xf32>, tensor<8xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %d = arith.subf %l, %r : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<8x3xf32>
  %start1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%exp : tensor<8x3xf32>) outs(%start1 : tensor<8xf32>) {
  ^bb0(%l: f32, %o: f32):
    %t = arith.addf %l, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %exp, %sum : tensor<8x3xf32>, tensor<8xf32>
}
