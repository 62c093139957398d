// What no other group has. A padding becomes a copy and a border, so that a kernel can do it while the rows that it reads
// are at hand; elementwise operations are a group as well. Without the option both stay as they are.
// RUN: smartmem-opt %s '--smartmem-form-groups=maps=true' | FileCheck %s
// RUN: smartmem-opt %s --smartmem-form-groups | FileCheck %s --check-prefix=NONE

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#channel = affine_map<(d0, d1, d2) -> (d2)>

// NONE-NOT: smartmem.group

// CHECK-LABEL: func.func @padded_slice
// CHECK: smartmem.group(%[[X:.*]] = %arg0) : (tensor<4x5x32xf32>) -> tensor<6x7x16xf32>
// CHECK: %[[HALF:.*]] = smartmem.view %[[X]] at (d0, d1, d2) -> (d0, d1, d2 + 16)
// CHECK: %[[COPY:.*]] = linalg.generic {{.*}} ins(%[[HALF]]
// CHECK: smartmem.view %[[COPY]] pieces
func.func @padded_slice(%x: tensor<4x5x32xf32>) -> tensor<6x7x16xf32> {
  %0 = smartmem.view %x pieces [
    [0 to 1, 0 to 7, 0 to 16] fill 0.0 : f32,
    [1 to 5, 0 to 1, 0 to 16] fill 0.0 : f32,
    [1 to 5, 1 to 6, 0 to 16] from 0 at (d0, d1, d2) -> (d0 - 1, d1 - 1, d2 + 16),
    [1 to 5, 6 to 7, 0 to 16] fill 0.0 : f32,
    [5 to 6, 0 to 7, 0 to 16] fill 0.0 : f32
  ] : (tensor<4x5x32xf32>) -> tensor<6x7x16xf32>
  return %0 : tensor<6x7x16xf32>
}

// CHECK-LABEL: func.func @bias
// CHECK: smartmem.group({{.*}}) : (tensor<4x5x32xf32>, tensor<32xf32>) -> tensor<4x5x32xf32>
func.func @bias(%x: tensor<4x5x32xf32>, %b: tensor<32xf32>) -> tensor<4x5x32xf32> {
  %e = tensor.empty() : tensor<4x5x32xf32>
  %0 = linalg.generic {indexing_maps = [#id, #channel, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %b : tensor<4x5x32xf32>, tensor<32xf32>) outs(%e : tensor<4x5x32xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<4x5x32xf32>
  return %0 : tensor<4x5x32xf32>
}

// What stacks two tensors can add to them as well: no map, which would leave the stacking alone.
// CHECK-LABEL: func.func @stacked
// CHECK-NOT: smartmem.group
// CHECK: return
func.func @stacked(%x: tensor<4x5x32xf32>, %y: tensor<2x5x32xf32>, %b: tensor<32xf32>) -> tensor<6x5x32xf32> {
  %v = smartmem.view %x, %y pieces [
    [0 to 4, 0 to 5, 0 to 32] from 0 at (d0, d1, d2) -> (d0, d1, d2),
    [4 to 6, 0 to 5, 0 to 32] from 1 at (d0, d1, d2) -> (d0 - 4, d1, d2)
  ] : (tensor<4x5x32xf32>, tensor<2x5x32xf32>) -> tensor<6x5x32xf32>
  %e = tensor.empty() : tensor<6x5x32xf32>
  %0 = linalg.generic {indexing_maps = [#id, #channel, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%v, %b : tensor<6x5x32xf32>, tensor<32xf32>) outs(%e : tensor<6x5x32xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<6x5x32xf32>
  return %0 : tensor<6x5x32xf32>
}
