// Operations that keep their dimensions of extent 1, each for its own reason.
// RUN: smartmem-opt %s --smartmem-drop-unit-dims | FileCheck %s --implicit-check-not=smartmem.view

#id = affine_map<(d0, d1) -> (d0, d1)>
#rows = affine_map<(d0, d1, d2) -> (d0, d1)>
#window = affine_map<(d0, d1, d2) -> (d0, d1 + d2)>
#width = affine_map<(d0, d1, d2) -> (d2)>
// The body reads its position, and positions would be renumbered.
// CHECK-LABEL: func.func @reads_position
func.func @reads_position() -> tensor<1x4xindex> {
  %e = tensor.empty() : tensor<1x4xindex>
  %0 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<1x4xindex>) {
  ^bb0(%o: index):
    %i = linalg.index 1 : index
    linalg.yield %i : index
  } -> tensor<1x4xindex>
  return %0 : tensor<1x4xindex>
}

// The sum starts from a tensor.
// CHECK-LABEL: func.func @start_value
func.func @start_value(%a: tensor<1x5xf32>, %b: tensor<5x3xf32>, %c: tensor<1x3xf32>) -> tensor<1x3xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<1x5xf32>, tensor<5x3xf32>) outs(%c : tensor<1x3xf32>) -> tensor<1x3xf32>
  return %0 : tensor<1x3xf32>
}

// Windows overlap.
// CHECK-LABEL: func.func @window
func.func @window(%x: tensor<1x6xf32>, %w: tensor<3xf32>, %start: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %0 = linalg.generic {indexing_maps = [#window, #width, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x6xf32>, tensor<3xf32>) outs(%start : tensor<1x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}
