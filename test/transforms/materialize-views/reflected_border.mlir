// Borders of two axes that read one tensor: each coordinate is chosen among three, and there is one read.
// RUN: smartmem-opt %s --smartmem-materialize-views | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK: linalg.generic
// CHECK-COUNT-4: arith.select {{.*}} : index
// CHECK-NOT: arith.select
// CHECK: tensor.extract
// CHECK-NOT: tensor.extract
func.func @f(%x: tensor<4x5xf32>) -> tensor<6x7xf32> {
  %0 = smartmem.view %x pieces [
    [0 to 1, 0 to 1] from 0 at (d0, d1) -> (-d0 + 1, -d1 + 1),
    [0 to 1, 1 to 6] from 0 at (d0, d1) -> (-d0 + 1, d1 - 1),
    [0 to 1, 6 to 7] from 0 at (d0, d1) -> (-d0 + 1, -d1 + 9),
    [1 to 5, 0 to 1] from 0 at (d0, d1) -> (d0 - 1, -d1 + 1),
    [1 to 5, 1 to 6] from 0 at (d0, d1) -> (d0 - 1, d1 - 1),
    [1 to 5, 6 to 7] from 0 at (d0, d1) -> (d0 - 1, -d1 + 9),
    [5 to 6, 0 to 1] from 0 at (d0, d1) -> (-d0 + 7, -d1 + 1),
    [5 to 6, 1 to 6] from 0 at (d0, d1) -> (-d0 + 7, d1 - 1),
    [5 to 6, 6 to 7] from 0 at (d0, d1) -> (-d0 + 7, -d1 + 9)
  ] : (tensor<4x5xf32>) -> tensor<6x7xf32>
  return %0 : tensor<6x7xf32>
}
