// Two tensors side by side: both are read and one is selected; the one that does not hold the element is read at 0.
// RUN: smartmem-opt %s --smartmem-absorb-views | FileCheck %s

#id = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func.func @f
// CHECK: %[[I:.*]] = linalg.index 0
// CHECK: %[[Y:.*]] = tensor.extract %arg1[%{{.*}}] : tensor<5xf32>
// CHECK: %[[C:.*]] = arith.cmpi ult, %[[I]], %{{.*}} : index
// CHECK: %[[S:.*]] = arith.select %[[C]], %[[I]], %{{.*}} : index
// CHECK: %[[X:.*]] = tensor.extract %arg0[%[[S]]] : tensor<3xf32>
// CHECK: arith.select %[[C]], %[[X]], %[[Y]] : f32
func.func @f(%x: tensor<3xf32>, %y: tensor<5xf32>) -> tensor<8xf32> {
  %v = smartmem.view %x, %y pieces [[0 to 3] from 0 at (d0) -> (d0), [3 to 8] from 1 at (d0) -> (d0 - 3)]
      : (tensor<3xf32>, tensor<5xf32>) -> tensor<8xf32>
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%v : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = math.exp %a : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
