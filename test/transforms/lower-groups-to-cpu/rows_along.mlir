// Two products of many rows, the second of which reads of each row of the first that row only: one launch, whose
// workgroups compute a block of rows of the first and go on with the same rows of the second. Where the second sums over
// the rows of the first, every workgroup would need what all others compute: two launches.
// RUN: smartmem-opt %s --allow-unregistered-dialect '--smartmem-lower-groups-to-cpu=lanes=4 registers=16' | FileCheck %s

// CHECK: func.func @contraction_256x64x64_contraction_256x32x64(%{{.*}}, %[[SECOND:.*]]: !stream.binding)

// CHECK-LABEL: func.func @same_rows
// CHECK: %[[R:.*]]:2 = "flow.dispatch"(%arg0, {{.*}}, {{.*}}) {entry_points = [@contraction_256x64x64_contraction_256x32x64::
// CHECK-NOT: flow.dispatch
// CHECK: return %[[R]]#1
func.func @same_rows(%x: tensor<256x64xf32>) -> tensor<256x32xf32> {
  %w = smartmem.parameter @w : tensor<64x64xf32>
  %a = smartmem.group(%p = %x, %q = %w) : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<256x64xf32>
    %s = linalg.fill ins(%zero : f32) outs(%e : tensor<256x64xf32>) -> tensor<256x64xf32>
    %m = linalg.matmul ins(%p, %q : tensor<256x64xf32>, tensor<64x64xf32>) outs(%s : tensor<256x64xf32>) -> tensor<256x64xf32>
    smartmem.yield %m : tensor<256x64xf32>
  }
  %v = smartmem.parameter @v : tensor<64x32xf32>
  %b = smartmem.group(%p = %a, %q = %v) : (tensor<256x64xf32>, tensor<64x32xf32>) -> tensor<256x32xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<256x32xf32>
    %s = linalg.fill ins(%zero : f32) outs(%e : tensor<256x32xf32>) -> tensor<256x32xf32>
    %m = linalg.matmul ins(%p, %q : tensor<256x64xf32>, tensor<64x32xf32>) outs(%s : tensor<256x32xf32>) -> tensor<256x32xf32>
    smartmem.yield %m : tensor<256x32xf32>
  }
  return %b : tensor<256x32xf32>
}

// CHECK-LABEL: func.func @all_rows
// CHECK-COUNT-2: "flow.dispatch"
// CHECK: return
func.func @all_rows(%x: tensor<256x64xf32>) -> tensor<256x64xf32> {
  %w = smartmem.parameter @square : tensor<64x64xf32>
  %a = smartmem.group(%p = %x, %q = %w) : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<256x64xf32>
    %s = linalg.fill ins(%zero : f32) outs(%e : tensor<256x64xf32>) -> tensor<256x64xf32>
    %m = linalg.matmul ins(%p, %q : tensor<256x64xf32>, tensor<64x64xf32>) outs(%s : tensor<256x64xf32>) -> tensor<256x64xf32>
    smartmem.yield %m : tensor<256x64xf32>
  }
  %v = smartmem.parameter @mix : tensor<256x256xf32>
  %b = smartmem.group(%p = %v, %q = %a) : (tensor<256x256xf32>, tensor<256x64xf32>) -> tensor<256x64xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<256x64xf32>
    %s = linalg.fill ins(%zero : f32) outs(%e : tensor<256x64xf32>) -> tensor<256x64xf32>
    %m = linalg.matmul ins(%p, %q : tensor<256x256xf32>, tensor<256x64xf32>) outs(%s : tensor<256x64xf32>) -> tensor<256x64xf32>
    smartmem.yield %m : tensor<256x64xf32>
  }
  return %b : tensor<256x64xf32>
}
