//===- Device.cpp - everything the layer knows of a device ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"

#include <algorithm>

namespace smartmem::image_layer {

Device::Device(DeviceInfo info, SetLoaderData setLoaderData)
    : info_(std::move(info)), setLoaderData_(setLoaderData), pipelines(info_, layouts, statistics),
      images(info_, statistics), views(info_, statistics), shadowPools(info_),
      recordingContext_{info_,     statistics, buffers, descriptors,
                        pipelines, images,     views,   shadowPools} {}

Device::~Device() {
  commandBuffers_.clear();
  queues_.clear();
  if (info_.options.wantsStatistics())
    statistics.append(info_.options.statisticsPath, info_.properties.deviceName);
}

void Device::allocated(VkCommandPool pool, uint32_t count, const VkCommandBuffer *commandBuffers) {
  std::unique_lock lock(commandBufferMutex_);
  for (uint32_t index = 0; index < count; ++index) {
    commandPools_[pool].push_back(commandBuffers[index]);
    commandBuffers_[commandBuffers[index]] =
        std::make_unique<CommandBuffer>(commandBuffers[index], recordingContext_);
  }
}

void Device::freed(VkCommandPool pool, uint32_t count, const VkCommandBuffer *commandBuffers) {
  std::unique_lock lock(commandBufferMutex_);
  std::vector<VkCommandBuffer> &owned = commandPools_[pool];
  for (uint32_t index = 0; index < count; ++index) {
    commandBuffers_.erase(commandBuffers[index]);
    owned.erase(std::remove(owned.begin(), owned.end(), commandBuffers[index]), owned.end());
  }
}

void Device::reset(VkCommandPool pool) {
  std::shared_lock lock(commandBufferMutex_);
  auto found = commandPools_.find(pool);
  if (found == commandPools_.end())
    return;
  for (VkCommandBuffer handle : found->second)
    commandBuffers_.at(handle)->reset();
}

void Device::destroyed(VkCommandPool pool) {
  std::unique_lock lock(commandBufferMutex_);
  auto found = commandPools_.find(pool);
  if (found == commandPools_.end())
    return;
  for (VkCommandBuffer handle : found->second)
    commandBuffers_.erase(handle);
  commandPools_.erase(found);
}

CommandBuffer &Device::commandBuffer(VkCommandBuffer handle) const {
  std::shared_lock lock(commandBufferMutex_);
  return *commandBuffers_.at(handle);
}

void Device::addQueue(VkQueue handle, uint32_t family) {
  std::unique_lock lock(queueMutex_);
  std::unique_ptr<Queue> &queue = queues_[handle];
  if (!queue)
    queue = std::make_unique<Queue>(handle, family, recordingContext_, setLoaderData_);
}

Queue &Device::queue(VkQueue handle) const {
  std::shared_lock lock(queueMutex_);
  return *queues_.at(handle);
}

VkResult Device::submit(VkQueue handle, PFN_vkQueueSubmit2 next, uint32_t count,
                        const VkSubmitInfo2 *infos, VkFence fence) {
  std::vector<CommandBuffer *> submitted;
  for (uint32_t batch = 0; batch < count; ++batch)
    for (uint32_t index = 0; index < infos[batch].commandBufferInfoCount; ++index)
      submitted.push_back(&commandBuffer(infos[batch].pCommandBufferInfos[index].commandBuffer));
  statistics.submissions += count;
  std::lock_guard lock(submissionMutex_);
  return queue(handle).submit(next, count, infos, fence, submitted);
}

VkResult Device::submit(VkQueue handle, uint32_t count, const VkSubmitInfo *infos, VkFence fence) {
  std::vector<CommandBuffer *> submitted;
  for (uint32_t batch = 0; batch < count; ++batch)
    for (uint32_t index = 0; index < infos[batch].commandBufferCount; ++index)
      submitted.push_back(&commandBuffer(infos[batch].pCommandBuffers[index]));
  statistics.submissions += count;
  std::lock_guard lock(submissionMutex_);
  return queue(handle).submit(count, infos, fence, submitted);
}

} // namespace smartmem::image_layer
