// Generics that do more than move one tensor's elements, each in its own way.
// RUN: smartmem-opt %s --smartmem-raise-views | FileCheck %s --implicit-check-not=smartmem.view

#id = affine_map<(d0) -> (d0)>
#first = affine_map<(d0) -> (0)>
#diagonal = affine_map<(d0) -> (d0, d0)>
func.func @arithmetic(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @value_from_outside(%x: tensor<4xf32>, %s: f32) -> tensor<4xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @writes_one_element(%x: tensor<1xf32>, %into: tensor<5xf32>) -> tensor<5xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #first], iterator_types = ["parallel"]}
      ins(%x : tensor<1xf32>) outs(%into : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
func.func @writes_the_diagonal(%x: tensor<4xf32>, %into: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #diagonal], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%into : tensor<4x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
