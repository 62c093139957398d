// With `conversions` a test for nan is made by what reads it: a truth value needs no memory. Elements that it compares
// with themselves are read once. What is compared with another tensor is no cheaper to read twice, and what the reader
// does not read anyway no cheaper than a truth value: both stay.
// RUN: smartmem-opt %s --smartmem-recompute-elementwise=conversions=true | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @itself
// CHECK: linalg.generic {{.*}} ins(%arg0{{.*}} : tensor<4x8xf32>{{.*}}) outs(%{{.*}} : tensor<4x8xf32>)
// CHECK: %[[T:.*]] = arith.cmpf une
// CHECK: arith.select %[[T]]
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @itself(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %t = tensor.empty() : tensor<4x8xi1>
  %e = tensor.empty() : tensor<4x8xf32>
  %nan = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %x : tensor<4x8xf32>, tensor<4x8xf32>) outs(%t : tensor<4x8xi1>) {
  ^bb0(%a: f32, %b: f32, %o: i1):
    %c = arith.cmpf une, %a, %b : f32
    linalg.yield %c : i1
  } -> tensor<4x8xi1>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%nan, %x : tensor<4x8xi1>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%c: i1, %a: f32, %o: f32):
    %zero = arith.constant 0.0 : f32
    %s = arith.select %c, %zero, %a : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @another
// CHECK: %[[T:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<4x8xi1>)
// CHECK: linalg.generic {{.*}} ins(%[[T]]
func.func @another(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %t = tensor.empty() : tensor<4x8xi1>
  %e = tensor.empty() : tensor<4x8xf32>
  %less = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<4x8xf32>, tensor<4x8xf32>) outs(%t : tensor<4x8xi1>) {
  ^bb0(%a: f32, %b: f32, %o: i1):
    %c = arith.cmpf olt, %a, %b : f32
    linalg.yield %c : i1
  } -> tensor<4x8xi1>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%less, %x : tensor<4x8xi1>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%c: i1, %a: f32, %o: f32):
    %zero = arith.constant 0.0 : f32
    %s = arith.select %c, %zero, %a : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @read_by_another
// CHECK: %[[T:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<4x8xi1>)
// CHECK: linalg.generic {{.*}} ins(%[[T]]
func.func @read_by_another(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %t = tensor.empty() : tensor<4x8xi1>
  %e = tensor.empty() : tensor<4x8xf32>
  %nan = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%t : tensor<4x8xi1>) {
  ^bb0(%a: f32, %o: i1):
    %c = arith.cmpf une, %a, %a : f32
    linalg.yield %c : i1
  } -> tensor<4x8xi1>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%nan, %y : tensor<4x8xi1>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%c: i1, %a: f32, %o: f32):
    %zero = arith.constant 0.0 : f32
    %s = arith.select %c, %zero, %a : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
