// A row divided by its sum is read with a border and alone. Only where kernels over rows write borders is it stored with
// the border.
// RUN: smartmem-opt %s '--smartmem-share-borders=rows=true' | FileCheck %s
// RUN: smartmem-opt %s --smartmem-share-borders | FileCheck %s --check-prefix=ALONE

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK: %[[N:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]
// CHECK: %[[B:.*]] = smartmem.view %[[N]] pieces [
// CHECK: : (tensor<4x6xf32>) -> tensor<6x6xf32>
// CHECK: %[[A:.*]] = smartmem.view %[[B]] at (d0, d1) -> (d0 + 1, d1) : (tensor<6x6xf32>) -> tensor<4x6xf32>
// CHECK: return %[[A]], %[[B]]

// ALONE: smartmem.view
// ALONE-NOT: smartmem.view
// ALONE: return
func.func @f(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<6x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x6xf32>) outs(%start : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %normal = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<4x6xf32>, tensor<4xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<4x6xf32>
  %padded = smartmem.view %normal pieces [
    [0 to 1, 0 to 6] fill 0.0 : f32,
    [1 to 5, 0 to 6] from 0 at (d0, d1) -> (d0 - 1, d1),
    [5 to 6, 0 to 6] fill 0.0 : f32
  ] : (tensor<4x6xf32>) -> tensor<6x6xf32>
  return %normal, %padded : tensor<4x6xf32>, tensor<6x6xf32>
}
