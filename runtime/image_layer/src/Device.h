//===- Device.h - everything the layer knows of a device --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_DEVICE_H
#define SMARTMEM_IMAGE_LAYER_DEVICE_H

#include "Queue.h"

namespace smartmem::image_layer {

/// A VkInstance that the layer is in.
struct Instance {
  VkInstance handle = VK_NULL_HANDLE;
  InstanceTable table;
};

/// A VkDevice that the layer is in. The trackers lock for themselves; this class holds them
/// together and owns the command buffers and queues.
class Device {
public:
  explicit Device(DeviceInfo info, SetLoaderData setLoaderData);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  const DeviceInfo &info() const { return info_; }
  const DeviceTable &table() const { return info_.table; }

  void allocated(VkCommandPool pool, uint32_t count, const VkCommandBuffer *commandBuffers);
  void freed(VkCommandPool pool, uint32_t count, const VkCommandBuffer *commandBuffers);
  void reset(VkCommandPool pool);
  void destroyed(VkCommandPool pool);
  /// The state of a command buffer that was allocated through the layer.
  CommandBuffer &commandBuffer(VkCommandBuffer handle) const;

  void addQueue(VkQueue handle, uint32_t family);
  VkResult submit(VkQueue queue, PFN_vkQueueSubmit2 next, uint32_t count,
                  const VkSubmitInfo2 *infos, VkFence fence);
  VkResult submit(VkQueue queue, uint32_t count, const VkSubmitInfo *infos, VkFence fence);

private:
  Queue &queue(VkQueue handle) const;

  DeviceInfo info_;
  SetLoaderData setLoaderData_;

public:
  Statistics statistics;
  BufferTracker buffers;
  DescriptorTracker descriptors;
  LayoutTracker layouts;
  PipelineTracker pipelines;
  ImageCache images;
  TexelViewCache views;
  ShadowPoolCache shadowPools;

private:
  RecordingContext recordingContext_;
  mutable std::shared_mutex commandBufferMutex_;
  std::unordered_map<VkCommandBuffer, std::unique_ptr<CommandBuffer>> commandBuffers_;
  std::unordered_map<VkCommandPool, std::vector<VkCommandBuffer>> commandPools_;
  std::mutex submissionMutex_; ///< Held while a submission is replayed and handed to the driver.
  mutable std::shared_mutex queueMutex_;
  std::unordered_map<VkQueue, std::unique_ptr<Queue>> queues_;
};

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_DEVICE_H
