// Rows are gathered at run-time positions, and a product reads the result with lanes along the rows. A gather stays as it
// is written, so that whole rows are copied; transposed, it would pick every element by itself.
// RUN: smartmem-opt %s --smartmem-select-layouts | FileCheck %s

#rows = affine_map<(d0, d1) -> (d0)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d1, d2)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: func.func @f
// CHECK: %[[G:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<64x32xf32>)
// CHECK: tensor.extract %{{.*}}[%{{.*}}, %{{.*}}] : tensor<100x32xf32>
// CHECK: } -> tensor<64x32xf32>
func.func @f(%x: tensor<100x32xf32>, %at: tensor<64xi32>, %y: tensor<48x32xf32>) -> tensor<48x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32xf32>
  %g = linalg.generic {indexing_maps = [#rows, #id], iterator_types = ["parallel", "parallel"]}
      ins(%at : tensor<64xi32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%p: i32, %o: f32):
    %i = arith.index_cast %p : i32 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%i, %j] : tensor<100x32xf32>
    linalg.yield %v : f32
  } -> tensor<64x32xf32>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%g : tensor<64x32xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%v: f32, %o: f32):
    %m = arith.negf %v : f32
    linalg.yield %m : f32
  } -> tensor<64x32xf32>
  %c = tensor.empty() : tensor<48x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%c : tensor<48x64xf32>) -> tensor<48x64xf32>
  %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%y, %n : tensor<48x32xf32>, tensor<64x32xf32>) outs(%start : tensor<48x64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<48x64xf32>
  return %r : tensor<48x64xf32>
}
