//===- Queue.h - submits command buffers with images in them ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_QUEUE_H
#define SMARTMEM_IMAGE_LAYER_QUEUE_H

#include "CommandBuffer.h"
#include <deque>
#include <functional>
#include <vulkan/vk_layer.h>

namespace smartmem::image_layer {

/// Called for dispatchable handles that the layer makes itself, so that layers below know them.
using SetLoaderData = PFN_vkSetDeviceLoaderData;

/// A queue, and what its submissions still use. The application synchronises access to a queue; the
/// device's submission lock is held on top of that, so that effects are replayed in one order.
///
/// A submission with image tensors becomes up to three batches: a layout transition for images that
/// no submission has used before, the application's own, and a timeline signal by which the layer
/// learns that the images are free. All others pass through unchanged.
class Queue {
public:
  Queue(VkQueue handle, uint32_t family, const RecordingContext &context,
        SetLoaderData setLoaderData)
      : handle_(handle), family_(family), context_(context), info_(context.info),
        setLoaderData_(setLoaderData) {}
  ~Queue();
  Queue(const Queue &) = delete;
  Queue &operator=(const Queue &) = delete;

  /// Submits by vkQueueSubmit2 or its KHR alias, whichever `submit` is.
  VkResult submit(PFN_vkQueueSubmit2 submit, uint32_t count, const VkSubmitInfo2 *infos,
                  VkFence fence, const std::vector<CommandBuffer *> &commandBuffers);
  VkResult submit(uint32_t count, const VkSubmitInfo *infos, VkFence fence,
                  const std::vector<CommandBuffer *> &commandBuffers);

private:
  /// What a submission uses until the timeline reaches `value`.
  struct Pending {
    uint64_t value;
    std::vector<RecordedResources> resources;
    VkCommandBuffer transition; ///< Null when there was none.
  };
  /// The batches to add around the application's.
  struct Extras {
    VkCommandBuffer transition = VK_NULL_HANDLE;
    uint64_t signalValue = 0; ///< 0: nothing to signal.
  };

  VkResult submitAround(const std::vector<CommandBuffer *> &commandBuffers,
                        const std::function<VkResult(const Extras &)> &submit);
  Status ensureTimeline();
  Status recordTransition(const std::vector<Image *> &fresh, VkCommandBuffer &commandBuffer);
  Status takeCommandBuffer(VkCommandBuffer &commandBuffer);
  void collectFinished();

  VkQueue handle_;
  uint32_t family_;
  const RecordingContext &context_;
  const DeviceInfo &info_;
  SetLoaderData setLoaderData_;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  uint64_t lastValue_ = 0;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::vector<VkCommandBuffer> idle_;
  std::deque<Pending> pending_;
};

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_QUEUE_H
