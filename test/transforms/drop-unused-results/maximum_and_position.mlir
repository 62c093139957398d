// The maximum of each row with its position. Where nobody reads the position, what is left is a plain maximum; where the
// position is read, and the maximum decides it, both stay.
// RUN: smartmem-opt %s --smartmem-drop-unused-results | FileCheck %s

#in = affine_map<(d0, d1) -> (d0, d1)>
#out = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @maximum
// CHECK-SAME: %[[X:.*]]: tensor<5x7xf32>, %[[LEAST:.*]]: tensor<5xf32>
// CHECK: %[[MOST:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<5x7xf32>) outs(%[[LEAST]] : tensor<5xf32>)
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[M:.*]]: f32):
// CHECK-NEXT: %[[N:.*]] = arith.maximumf %[[A]], %[[M]]
// CHECK-NEXT: linalg.yield %[[N]] : f32
// CHECK: return %[[MOST]]
func.func @maximum(%x: tensor<5x7xf32>, %least: tensor<5xf32>, %first: tensor<5xi64>) -> tensor<5xf32> {
  %r:2 = linalg.generic {indexing_maps = [#in, #out, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<5x7xf32>) outs(%least, %first : tensor<5xf32>, tensor<5xi64>) {
  ^bb0(%a: f32, %m: f32, %p: i64):
    %i = linalg.index 1 : index
    %here = arith.index_cast %i : index to i64
    %n = arith.maximumf %a, %m : f32
    %more = arith.cmpf ogt, %a, %m : f32
    %q = arith.select %more, %here, %p : i64
    linalg.yield %n, %q : f32, i64
  } -> (tensor<5xf32>, tensor<5xi64>)
  return %r#0 : tensor<5xf32>
}

// CHECK-LABEL: func.func @position
// CHECK: %[[BOTH:.*]]:2 = linalg.generic
// CHECK: return %[[BOTH]]#1
func.func @position(%x: tensor<5x7xf32>, %least: tensor<5xf32>, %first: tensor<5xi64>) -> tensor<5xi64> {
  %r:2 = linalg.generic {indexing_maps = [#in, #out, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<5x7xf32>) outs(%least, %first : tensor<5xf32>, tensor<5xi64>) {
  ^bb0(%a: f32, %m: f32, %p: i64):
    %i = linalg.index 1 : index
    %here = arith.index_cast %i : index to i64
    %n = arith.maximumf %a, %m : f32
    %more = arith.cmpf ogt, %a, %m : f32
    %q = arith.select %more, %here, %p : i64
    linalg.yield %n, %q : f32, i64
  } -> (tensor<5xf32>, tensor<5xi64>)
  return %r#1 : tensor<5xi64>
}

// Two that do not need each other: the second is computed alone, and what only the first needs goes.
// CHECK-LABEL: func.func @second
// CHECK: linalg.generic {{.*}}outs(%arg2 : tensor<5xf32>)
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[S:.*]]: f32):
// CHECK-NEXT: arith.addf %[[S]], %[[A]]
// CHECK-NEXT: linalg.yield
func.func @second(%x: tensor<5x7xf32>, %least: tensor<5xf32>, %zero: tensor<5xf32>) -> tensor<5xf32> {
  %r:2 = linalg.generic {indexing_maps = [#in, #out, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<5x7xf32>) outs(%least, %zero : tensor<5xf32>, tensor<5xf32>) {
  ^bb0(%a: f32, %m: f32, %s: f32):
    %n = arith.maximumf %a, %m : f32
    %t = arith.addf %s, %a : f32
    linalg.yield %n, %t : f32, f32
  } -> (tensor<5xf32>, tensor<5xf32>)
  return %r#1 : tensor<5xf32>
}
