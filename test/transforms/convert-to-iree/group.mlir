// A group becomes a dispatch region, which IREE makes one kernel of whatever it would have done itself.
// RUN: smartmem-opt --allow-unregistered-dialect --smartmem-convert-to-iree %s | FileCheck %s
// RUN: smartmem-opt --allow-unregistered-dialect --smartmem-convert-to-iree %s \
// RUN:   | iree-compile --iree-hal-target-device=vulkan --compile-to=flow - | FileCheck %s --check-prefix=FLOW

#id = affine_map<(d0) -> (d0)>
// CHECK: %[[R:.*]] = "flow.dispatch.region"() ({
// CHECK-NOT: smartmem
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%arg0
// CHECK: "flow.return"(%[[A]])
// CHECK: linalg.generic {{.*}} ins(%[[R]]
// FLOW-COUNT-2: flow.dispatch @
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %g = smartmem.group(%y = %x) : (tensor<64xf32>) -> tensor<64xf32> {
    %e2 = tensor.empty() : tensor<64xf32>
    %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%y : tensor<64xf32>) outs(%e2 : tensor<64xf32>) {
    ^bb0(%l: f32, %o: f32):
      %t = math.exp %l : f32
      linalg.yield %t : f32
    } -> tensor<64xf32>
    smartmem.yield %0 : tensor<64xf32>
  }
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%g : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%l: f32, %o: f32):
    %t = math.tanh %l : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  return %1 : tensor<64xf32>
}
