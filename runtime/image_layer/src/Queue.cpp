//===- Queue.cpp - submits command buffers with images in them --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Queue.h"

#include <utility>

namespace smartmem::image_layer {

Queue::~Queue() {
  // The application has waited for its own batches, and not for the signal that follows them.
  if (timeline_ && lastValue_ > 0) {
    VkSemaphoreWaitInfo wait = {VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
    wait.semaphoreCount = 1;
    wait.pSemaphores = &timeline_;
    wait.pValues = &lastValue_;
    info_.table.WaitSemaphores(info_.device, &wait, ~uint64_t(0));
  }
  for (Pending &pending : pending_)
    for (RecordedResources &resources : pending.resources)
      context_.release(std::move(resources));
  info_.table.DestroyCommandPool(info_.device, pool_, nullptr);
  info_.table.DestroySemaphore(info_.device, timeline_, nullptr);
}

VkResult Queue::submit(PFN_vkQueueSubmit2 submit, uint32_t count, const VkSubmitInfo2 *infos,
                       VkFence fence, const std::vector<CommandBuffer *> &commandBuffers) {
  return submitAround(commandBuffers, [&](const Extras &extras) {
    if (!extras.transition && !extras.signalValue)
      return submit(handle_, count, infos, fence);
    VkCommandBufferSubmitInfo transition = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO};
    transition.commandBuffer = extras.transition;
    VkSemaphoreSubmitInfo signal = {VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO};
    signal.semaphore = timeline_;
    signal.value = extras.signalValue;
    signal.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;

    std::vector<VkSubmitInfo2> batches;
    if (extras.transition) {
      batches.push_back({VK_STRUCTURE_TYPE_SUBMIT_INFO_2});
      batches.back().commandBufferInfoCount = 1;
      batches.back().pCommandBufferInfos = &transition;
    }
    batches.insert(batches.end(), infos, infos + count);
    if (extras.signalValue) {
      batches.push_back({VK_STRUCTURE_TYPE_SUBMIT_INFO_2});
      batches.back().signalSemaphoreInfoCount = 1;
      batches.back().pSignalSemaphoreInfos = &signal;
    }
    return submit(handle_, static_cast<uint32_t>(batches.size()), batches.data(), fence);
  });
}

VkResult Queue::submit(uint32_t count, const VkSubmitInfo *infos, VkFence fence,
                       const std::vector<CommandBuffer *> &commandBuffers) {
  return submitAround(commandBuffers, [&](const Extras &extras) {
    if (!extras.transition && !extras.signalValue)
      return info_.table.QueueSubmit(handle_, count, infos, fence);
    VkTimelineSemaphoreSubmitInfo timeline = {VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
    timeline.signalSemaphoreValueCount = 1;
    timeline.pSignalSemaphoreValues = &extras.signalValue;

    std::vector<VkSubmitInfo> batches;
    if (extras.transition) {
      batches.push_back({VK_STRUCTURE_TYPE_SUBMIT_INFO});
      batches.back().commandBufferCount = 1;
      batches.back().pCommandBuffers = &extras.transition;
    }
    batches.insert(batches.end(), infos, infos + count);
    if (extras.signalValue) {
      batches.push_back({VK_STRUCTURE_TYPE_SUBMIT_INFO, &timeline});
      batches.back().signalSemaphoreCount = 1;
      batches.back().pSignalSemaphores = &timeline_;
    }
    return info_.table.QueueSubmit(handle_, static_cast<uint32_t>(batches.size()), batches.data(),
                                   fence);
  });
}

VkResult Queue::submitAround(const std::vector<CommandBuffer *> &commandBuffers,
                             const std::function<VkResult(const Extras &)> &submit) {
  bool wantsTime = context_.info.options.wantsStatistics();
  CpuTimer before(context_.statistics.cpu_ns_submitting, wantsTime);
  collectFinished();
  std::vector<const std::vector<Effect> *> effects;
  for (const CommandBuffer *commandBuffer : commandBuffers)
    if (!commandBuffer->effects().empty())
      effects.push_back(&commandBuffer->effects());
  Extras extras;
  if (effects.empty()) {
    before.stop();
    return submit(extras);
  }

  auto failed = [&](const Status &status) {
    ++context_.statistics.errors;
    return report(status);
  };
  ++context_.statistics.submissions_with_images;
  std::vector<Image *> fresh;
  if (Status status = context_.images.beginSubmission(effects, fresh); !status.ok())
    return failed(status);
  Status status = ensureTimeline();
  if (status.ok() && !fresh.empty())
    status = recordTransition(fresh, extras.transition);
  if (!status.ok()) {
    context_.images.rollbackSubmission();
    return failed(status);
  }
  extras.signalValue = lastValue_ + 1;
  before.stop();
  VkResult result = submit(extras);
  CpuTimer after(context_.statistics.cpu_ns_submitting, wantsTime);
  if (result != VK_SUCCESS) {
    context_.images.rollbackSubmission();
    if (extras.transition)
      idle_.push_back(extras.transition);
    return result;
  }
  ++lastValue_;
  Pending pending{extras.signalValue, {}, extras.transition};
  for (CommandBuffer *commandBuffer : commandBuffers)
    if (commandBuffer->isOneTime())
      pending.resources.push_back(commandBuffer->takeResources());
  pending_.push_back(std::move(pending));
  context_.images.commitSubmission(fresh);
  context_.statistics.layout_transitions += fresh.size();
  return VK_SUCCESS;
}

void Queue::collectFinished() {
  if (pending_.empty())
    return;
  uint64_t reached = 0;
  if (info_.table.GetSemaphoreCounterValue(info_.device, timeline_, &reached) != VK_SUCCESS)
    return; // The device is lost; the application will hear of it.
  while (!pending_.empty() && pending_.front().value <= reached) {
    for (RecordedResources &resources : pending_.front().resources)
      context_.release(std::move(resources));
    if (pending_.front().transition)
      idle_.push_back(pending_.front().transition);
    pending_.pop_front();
  }
}

Status Queue::ensureTimeline() {
  if (timeline_)
    return {};
  if (!info_.hasTimelineSemaphores)
    return Status::unsupported("image tensors need the timelineSemaphore feature, which the "
                               "application did not enable on this device");
  VkSemaphoreTypeCreateInfo type = {VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo semaphore = {VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type};
  if (VkResult result = info_.table.CreateSemaphore(info_.device, &semaphore, nullptr, &timeline_))
    return Status::error(result, "vkCreateSemaphore failed for the layer's timeline");
  return {};
}

Status Queue::takeCommandBuffer(VkCommandBuffer &commandBuffer) {
  if (!idle_.empty()) {
    commandBuffer = idle_.back();
    idle_.pop_back();
    return {};
  }
  if (!pool_) {
    VkCommandPoolCreateInfo pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.flags =
        VK_COMMAND_POOL_CREATE_TRANSIENT_BIT | VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    pool.queueFamilyIndex = family_;
    if (VkResult result = info_.table.CreateCommandPool(info_.device, &pool, nullptr, &pool_))
      return Status::error(result, "vkCreateCommandPool failed for layout transitions");
  }
  VkCommandBufferAllocateInfo allocate = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  allocate.commandPool = pool_;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  VkResult result = info_.table.AllocateCommandBuffers(info_.device, &allocate, &commandBuffer);
  if (result == VK_SUCCESS)
    result = setLoaderData_(info_.device, commandBuffer);
  if (result != VK_SUCCESS)
    return Status::error(result, "vkAllocateCommandBuffers failed for layout transitions");
  return {};
}

/// Moves images from UNDEFINED to GENERAL, where they stay for life: shaders write and read them in
/// turn, storage images must be in that layout, and sampled ones may. Nothing used the images
/// before, so there is nothing to wait for; the barriers that the application itself records
/// between dispatches are global memory barriers and order image accesses as they order buffers.
Status Queue::recordTransition(const std::vector<Image *> &fresh, VkCommandBuffer &commandBuffer) {
  SMARTMEM_RETURN_IF_ERROR(takeCommandBuffer(commandBuffer));
  VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  VkResult result = info_.table.BeginCommandBuffer(commandBuffer, &begin);
  if (result == VK_SUCCESS) {
    std::vector<VkImageMemoryBarrier> barriers;
    for (const Image *image : fresh) {
      VkImageMemoryBarrier barrier = {VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER};
      barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
      barrier.oldLayout = VK_IMAGE_LAYOUT_UNDEFINED;
      barrier.newLayout = VK_IMAGE_LAYOUT_GENERAL;
      barrier.srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
      barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
      barrier.image = image->image;
      barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, VK_REMAINING_ARRAY_LAYERS};
      barriers.push_back(barrier);
    }
    info_.table.CmdPipelineBarrier(commandBuffer, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT,
                                   VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 0, nullptr, 0, nullptr,
                                   static_cast<uint32_t>(barriers.size()), barriers.data());
    result = info_.table.EndCommandBuffer(commandBuffer);
  }
  if (result != VK_SUCCESS) {
    idle_.push_back(std::exchange(commandBuffer, VkCommandBuffer(VK_NULL_HANDLE)));
    return Status::error(result, "recording layout transitions failed");
  }
  return {};
}

} // namespace smartmem::image_layer
