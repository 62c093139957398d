// More pieces than the option allows become a tensor.
// RUN: smartmem-opt %s --smartmem-absorb-views=max-pieces=1 | FileCheck %s

#id = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK: smartmem.view %arg0 pieces
func.func @f(%x: tensor<3xf32>) -> tensor<4xf32> {
  %v = smartmem.view %x pieces [[0 to 3] from 0 at (d0) -> (d0), [3 to 4] fill 0.0 : f32]
      : (tensor<3xf32>) -> tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%v : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = math.exp %a : f32
    linalg.yield %n : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
