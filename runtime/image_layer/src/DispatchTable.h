//===- DispatchTable.h - the next layer's functions -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_DISPATCHTABLE_H
#define SMARTMEM_IMAGE_LAYER_DISPATCHTABLE_H

#include <vulkan/vulkan.h>

namespace smartmem::image_layer {

// clang-format off
#define SMARTMEM_INSTANCE_FUNCTIONS(X)                                                             \
  X(DestroyInstance) X(EnumerateDeviceExtensionProperties) X(GetPhysicalDeviceProperties)          \
  X(GetPhysicalDeviceMemoryProperties) X(GetPhysicalDeviceImageFormatProperties)

/// Functions of every Vulkan 1.0 device.
#define SMARTMEM_DEVICE_FUNCTIONS(X)                                                               \
  X(AllocateCommandBuffers) X(AllocateDescriptorSets) X(AllocateMemory) X(BeginCommandBuffer)      \
  X(BindBufferMemory) X(BindImageMemory) X(CmdBindDescriptorSets) X(CmdBindPipeline)               \
  X(CmdCopyBuffer) X(CmdDispatch) X(CmdDispatchIndirect) X(CmdExecuteCommands) X(CmdFillBuffer)    \
  X(CmdPipelineBarrier) X(CmdPushConstants) X(CmdUpdateBuffer) X(CreateBuffer) X(CreateBufferView) \
  X(CreateCommandPool) X(CreateComputePipelines) X(CreateDescriptorPool)                           \
  X(CreateDescriptorSetLayout) X(CreateImage) X(CreateImageView) X(CreatePipelineLayout)           \
  X(CreateSemaphore) X(CreateShaderModule) X(DestroyBuffer) X(DestroyBufferView)                   \
  X(DestroyCommandPool) X(DestroyDescriptorPool) X(DestroyDescriptorSetLayout) X(DestroyDevice)    \
  X(DestroyImage) X(DestroyImageView) X(DestroyPipeline) X(DestroyPipelineLayout)                  \
  X(DestroySemaphore) X(DestroyShaderModule) X(EndCommandBuffer) X(FreeCommandBuffers)             \
  X(FreeDescriptorSets) X(FreeMemory) X(GetDeviceQueue) X(GetImageMemoryRequirements)              \
  X(MapMemory) X(QueueSubmit) X(ResetCommandBuffer) X(ResetCommandPool) X(ResetDescriptorPool)                  \
  X(UnmapMemory) X(UpdateDescriptorSets)

/// Functions of later versions and extensions: null when the device has not got them.
#define SMARTMEM_OPTIONAL_DEVICE_FUNCTIONS(X)                                                      \
  X(BindBufferMemory2) X(BindBufferMemory2KHR) X(CmdCopyBuffer2) X(CmdCopyBuffer2KHR)              \
  X(CmdDispatchBase) X(CmdDispatchBaseKHR) X(CmdPushDescriptorSetKHR) X(GetDeviceQueue2)           \
  X(GetSemaphoreCounterValue) X(GetSemaphoreCounterValueKHR) X(QueueSubmit2) X(QueueSubmit2KHR)    \
  X(WaitSemaphores) X(WaitSemaphoresKHR)
// clang-format on

#define SMARTMEM_DECLARE_FUNCTION(name) PFN_vk##name name = nullptr;

struct InstanceTable {
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
  SMARTMEM_INSTANCE_FUNCTIONS(SMARTMEM_DECLARE_FUNCTION)

  void load(VkInstance instance, PFN_vkGetInstanceProcAddr next);
};

struct DeviceTable {
  PFN_vkGetDeviceProcAddr GetDeviceProcAddr = nullptr;
  SMARTMEM_DEVICE_FUNCTIONS(SMARTMEM_DECLARE_FUNCTION)
  SMARTMEM_OPTIONAL_DEVICE_FUNCTIONS(SMARTMEM_DECLARE_FUNCTION)

  void load(VkDevice device, PFN_vkGetDeviceProcAddr next);
};

#undef SMARTMEM_DECLARE_FUNCTION

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_DISPATCHTABLE_H
