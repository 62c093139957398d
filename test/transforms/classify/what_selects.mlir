// A slice, a concatenation of whole tensors and a gather at run-time positions take elements as they come (ILI); a
// reversed order of axes and a regrouping do not (ILD). What is no operation on elements has no group.
// RUN: smartmem-opt %s --smartmem-classify | FileCheck %s

func.func @f(%x: tensor<6x4xf32>, %at: tensor<3xi64>) -> (tensor<2x4xf32>, tensor<3x2x4xf32>, tensor<3x4xf32>) {
  // CHECK: tensor.extract_slice {{.*}}op_class<ili_fixed>
  %0 = tensor.extract_slice %x[1, 0] [2, 4] [2, 1] : tensor<6x4xf32> to tensor<2x4xf32>
  // CHECK: tensor.expand_shape {{.*}}op_class<ild_fixed>
  %1 = tensor.expand_shape %x [[0, 1], [2]] output_shape [3, 2, 4] : tensor<6x4xf32> into tensor<3x2x4xf32>
  // CHECK: tensor.empty() : tensor<3x4xf32>
  %e = tensor.empty() : tensor<3x4xf32>
  // CHECK: linalg.generic {{.*}}op_class<ili_fixed>
  %2 = linalg.generic {
      indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%at : tensor<3xi64>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%i: i64, %o: f32):
    %row = arith.index_cast %i : i64 to index
    %column = linalg.index 1 : index
    %v = tensor.extract %x[%row, %column] : tensor<6x4xf32>
    linalg.yield %v : f32
  } -> tensor<3x4xf32>
  return %0, %1, %2 : tensor<2x4xf32>, tensor<3x2x4xf32>, tensor<3x4xf32>
}
