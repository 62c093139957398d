//===- CommandHooks.cpp - command buffers and queues ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Hooks.h"

namespace smartmem::image_layer::hooks {

//===----------------------------------------------------------------------===//
// Life of command buffers
//===----------------------------------------------------------------------===//

VKAPI_ATTR VkResult VKAPI_CALL AllocateCommandBuffers(VkDevice handle,
                                                      const VkCommandBufferAllocateInfo *info,
                                                      VkCommandBuffer *commandBuffers) {
  Device &device = deviceOf(handle);
  VkResult result = device.table().AllocateCommandBuffers(handle, info, commandBuffers);
  if (result == VK_SUCCESS)
    device.allocated(info->commandPool, info->commandBufferCount, commandBuffers);
  return result;
}

VKAPI_ATTR void VKAPI_CALL FreeCommandBuffers(VkDevice handle, VkCommandPool pool, uint32_t count,
                                              const VkCommandBuffer *commandBuffers) {
  Device &device = deviceOf(handle);
  device.freed(pool, count, commandBuffers);
  device.table().FreeCommandBuffers(handle, pool, count, commandBuffers);
}

VKAPI_ATTR VkResult VKAPI_CALL ResetCommandPool(VkDevice handle, VkCommandPool pool,
                                                VkCommandPoolResetFlags flags) {
  Device &device = deviceOf(handle);
  device.reset(pool);
  return device.table().ResetCommandPool(handle, pool, flags);
}

VKAPI_ATTR void VKAPI_CALL DestroyCommandPool(VkDevice handle, VkCommandPool pool,
                                              const VkAllocationCallbacks *allocator) {
  Device &device = deviceOf(handle);
  device.destroyed(pool);
  device.table().DestroyCommandPool(handle, pool, allocator);
}

VKAPI_ATTR VkResult VKAPI_CALL ResetCommandBuffer(VkCommandBuffer handle,
                                                  VkCommandBufferResetFlags flags) {
  Device &device = deviceOf(handle);
  device.commandBuffer(handle).reset();
  return device.table().ResetCommandBuffer(handle, flags);
}

VKAPI_ATTR VkResult VKAPI_CALL BeginCommandBuffer(VkCommandBuffer handle,
                                                  const VkCommandBufferBeginInfo *info) {
  Device &device = deviceOf(handle);
  device.commandBuffer(handle).begin(info->flags);
  return device.table().BeginCommandBuffer(handle, info);
}

VKAPI_ATTR VkResult VKAPI_CALL EndCommandBuffer(VkCommandBuffer handle) {
  Device &device = deviceOf(handle);
  VkResult result = device.table().EndCommandBuffer(handle);
  const Status &failure = device.commandBuffer(handle).failure();
  return failure.ok() ? result : failure.result();
}

//===----------------------------------------------------------------------===//
// State and dispatches
//===----------------------------------------------------------------------===//

VKAPI_ATTR void VKAPI_CALL CmdBindPipeline(VkCommandBuffer handle, VkPipelineBindPoint point,
                                           VkPipeline pipeline) {
  Device &device = deviceOf(handle);
  if (point == VK_PIPELINE_BIND_POINT_COMPUTE)
    device.commandBuffer(handle).bindPipeline(device.pipelines.find(pipeline));
  device.table().CmdBindPipeline(handle, point, pipeline);
}

VKAPI_ATTR void VKAPI_CALL CmdBindDescriptorSets(VkCommandBuffer handle, VkPipelineBindPoint point,
                                                 VkPipelineLayout layout, uint32_t first,
                                                 uint32_t count, const VkDescriptorSet *sets,
                                                 uint32_t offsetCount, const uint32_t *offsets) {
  Device &device = deviceOf(handle);
  if (point == VK_PIPELINE_BIND_POINT_COMPUTE)
    device.commandBuffer(handle).bindSets(layout, first, count, sets, offsetCount);
  device.table().CmdBindDescriptorSets(handle, point, layout, first, count, sets, offsetCount,
                                       offsets);
}

VKAPI_ATTR void VKAPI_CALL CmdPushDescriptorSetKHR(VkCommandBuffer handle,
                                                   VkPipelineBindPoint point,
                                                   VkPipelineLayout layout, uint32_t set,
                                                   uint32_t count,
                                                   const VkWriteDescriptorSet *writes) {
  Device &device = deviceOf(handle);
  if (point == VK_PIPELINE_BIND_POINT_COMPUTE)
    device.commandBuffer(handle).pushDescriptors(layout, set, count, writes);
  device.table().CmdPushDescriptorSetKHR(handle, point, layout, set, count, writes);
}

VKAPI_ATTR void VKAPI_CALL CmdPushConstants(VkCommandBuffer handle, VkPipelineLayout layout,
                                            VkShaderStageFlags stages, uint32_t offset,
                                            uint32_t size, const void *values) {
  Device &device = deviceOf(handle);
  if (stages & VK_SHADER_STAGE_COMPUTE_BIT)
    device.commandBuffer(handle).pushConstants(offset, size, values);
  device.table().CmdPushConstants(handle, layout, stages, offset, size, values);
}

VKAPI_ATTR void VKAPI_CALL CmdDispatch(VkCommandBuffer handle, uint32_t x, uint32_t y, uint32_t z) {
  Device &device = deviceOf(handle);
  if (device.commandBuffer(handle).prepareDispatch())
    device.table().CmdDispatch(handle, x, y, z);
}

VKAPI_ATTR void VKAPI_CALL CmdDispatchIndirect(VkCommandBuffer handle, VkBuffer buffer,
                                               VkDeviceSize offset) {
  Device &device = deviceOf(handle);
  CommandBuffer &commandBuffer = device.commandBuffer(handle);
  commandBuffer.noteTransfer(Effect::Kind::BufferRead, "vkCmdDispatchIndirect", buffer, offset,
                             sizeof(VkDispatchIndirectCommand));
  if (commandBuffer.prepareDispatch())
    device.table().CmdDispatchIndirect(handle, buffer, offset);
}

VKAPI_ATTR void VKAPI_CALL CmdDispatchBase(VkCommandBuffer handle, uint32_t baseX, uint32_t baseY,
                                           uint32_t baseZ, uint32_t x, uint32_t y, uint32_t z) {
  Device &device = deviceOf(handle);
  if (device.commandBuffer(handle).prepareDispatch())
    device.table().CmdDispatchBase(handle, baseX, baseY, baseZ, x, y, z);
}

VKAPI_ATTR void VKAPI_CALL CmdDispatchBaseKHR(VkCommandBuffer handle, uint32_t baseX,
                                              uint32_t baseY, uint32_t baseZ, uint32_t x,
                                              uint32_t y, uint32_t z) {
  Device &device = deviceOf(handle);
  if (device.commandBuffer(handle).prepareDispatch())
    device.table().CmdDispatchBaseKHR(handle, baseX, baseY, baseZ, x, y, z);
}

VKAPI_ATTR void VKAPI_CALL CmdExecuteCommands(VkCommandBuffer handle, uint32_t count,
                                              const VkCommandBuffer *secondaries) {
  Device &device = deviceOf(handle);
  for (uint32_t index = 0; index < count; ++index)
    device.commandBuffer(handle).execute(device.commandBuffer(secondaries[index]));
  device.table().CmdExecuteCommands(handle, count, secondaries);
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

VKAPI_ATTR void VKAPI_CALL CmdCopyBuffer(VkCommandBuffer handle, VkBuffer source, VkBuffer target,
                                         uint32_t count, const VkBufferCopy *regions) {
  Device &device = deviceOf(handle);
  CommandBuffer &commandBuffer = device.commandBuffer(handle);
  for (uint32_t index = 0; index < count; ++index) {
    const VkBufferCopy &region = regions[index];
    commandBuffer.noteTransfer(Effect::Kind::BufferRead, "vkCmdCopyBuffer", source,
                               region.srcOffset, region.size);
    commandBuffer.noteTransfer(Effect::Kind::BufferWrite, "vkCmdCopyBuffer", target,
                               region.dstOffset, region.size);
  }
  device.table().CmdCopyBuffer(handle, source, target, count, regions);
}

static void noteCopy2(CommandBuffer &commandBuffer, const VkCopyBufferInfo2 &info) {
  for (uint32_t index = 0; index < info.regionCount; ++index) {
    const VkBufferCopy2 &region = info.pRegions[index];
    commandBuffer.noteTransfer(Effect::Kind::BufferRead, "vkCmdCopyBuffer2", info.srcBuffer,
                               region.srcOffset, region.size);
    commandBuffer.noteTransfer(Effect::Kind::BufferWrite, "vkCmdCopyBuffer2", info.dstBuffer,
                               region.dstOffset, region.size);
  }
}

VKAPI_ATTR void VKAPI_CALL CmdCopyBuffer2(VkCommandBuffer handle, const VkCopyBufferInfo2 *info) {
  Device &device = deviceOf(handle);
  noteCopy2(device.commandBuffer(handle), *info);
  device.table().CmdCopyBuffer2(handle, info);
}

VKAPI_ATTR void VKAPI_CALL CmdCopyBuffer2KHR(VkCommandBuffer handle,
                                             const VkCopyBufferInfo2 *info) {
  Device &device = deviceOf(handle);
  noteCopy2(device.commandBuffer(handle), *info);
  device.table().CmdCopyBuffer2KHR(handle, info);
}

VKAPI_ATTR void VKAPI_CALL CmdFillBuffer(VkCommandBuffer handle, VkBuffer buffer,
                                         VkDeviceSize offset, VkDeviceSize size, uint32_t value) {
  Device &device = deviceOf(handle);
  device.commandBuffer(handle).noteTransfer(Effect::Kind::BufferWrite, "vkCmdFillBuffer", buffer,
                                            offset, size);
  device.table().CmdFillBuffer(handle, buffer, offset, size, value);
}

VKAPI_ATTR void VKAPI_CALL CmdUpdateBuffer(VkCommandBuffer handle, VkBuffer buffer,
                                           VkDeviceSize offset, VkDeviceSize size,
                                           const void *data) {
  Device &device = deviceOf(handle);
  device.commandBuffer(handle).noteTransfer(Effect::Kind::BufferWrite, "vkCmdUpdateBuffer", buffer,
                                            offset, size);
  device.table().CmdUpdateBuffer(handle, buffer, offset, size, data);
}

//===----------------------------------------------------------------------===//
// Queues
//===----------------------------------------------------------------------===//

VKAPI_ATTR void VKAPI_CALL GetDeviceQueue(VkDevice handle, uint32_t family, uint32_t index,
                                          VkQueue *queue) {
  Device &device = deviceOf(handle);
  device.table().GetDeviceQueue(handle, family, index, queue);
  if (*queue)
    device.addQueue(*queue, family);
}

VKAPI_ATTR void VKAPI_CALL GetDeviceQueue2(VkDevice handle, const VkDeviceQueueInfo2 *info,
                                           VkQueue *queue) {
  Device &device = deviceOf(handle);
  device.table().GetDeviceQueue2(handle, info, queue);
  if (*queue)
    device.addQueue(*queue, info->queueFamilyIndex);
}

VKAPI_ATTR VkResult VKAPI_CALL QueueSubmit(VkQueue handle, uint32_t count,
                                           const VkSubmitInfo *infos, VkFence fence) {
  return deviceOf(handle).submit(handle, count, infos, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL QueueSubmit2(VkQueue handle, uint32_t count,
                                            const VkSubmitInfo2 *infos, VkFence fence) {
  Device &device = deviceOf(handle);
  return device.submit(handle, device.table().QueueSubmit2, count, infos, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL QueueSubmit2KHR(VkQueue handle, uint32_t count,
                                               const VkSubmitInfo2 *infos, VkFence fence) {
  Device &device = deviceOf(handle);
  return device.submit(handle, device.table().QueueSubmit2KHR, count, infos, fence);
}

} // namespace smartmem::image_layer::hooks
