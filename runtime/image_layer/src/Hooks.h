//===- Hooks.h - the Vulkan commands that the layer intercepts --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_HOOKS_H
#define SMARTMEM_IMAGE_LAYER_HOOKS_H

#include "Device.h"
#include <type_traits>

namespace smartmem::image_layer {

// clang-format off
#define SMARTMEM_DEVICE_HOOKS(X)                                                                   \
  X(AllocateCommandBuffers) X(AllocateDescriptorSets) X(BeginCommandBuffer) X(BindBufferMemory)    \
  X(BindBufferMemory2) X(BindBufferMemory2KHR) X(CmdBindDescriptorSets) X(CmdBindPipeline)         \
  X(CmdCopyBuffer) X(CmdCopyBuffer2) X(CmdCopyBuffer2KHR) X(CmdDispatch) X(CmdDispatchBase)        \
  X(CmdDispatchBaseKHR) X(CmdDispatchIndirect) X(CmdExecuteCommands) X(CmdFillBuffer)              \
  X(CmdPushConstants) X(CmdPushDescriptorSetKHR) X(CmdUpdateBuffer) X(CreateBuffer)                \
  X(CreateComputePipelines) X(CreateDescriptorSetLayout) X(CreatePipelineLayout)                   \
  X(CreateShaderModule) X(DestroyBuffer) X(DestroyCommandPool) X(DestroyDescriptorPool)            \
  X(DestroyDescriptorSetLayout) X(DestroyDevice) X(DestroyPipeline) X(DestroyPipelineLayout)       \
  X(DestroyShaderModule) X(EndCommandBuffer) X(FreeCommandBuffers) X(FreeDescriptorSets)           \
  X(FreeMemory) X(GetDeviceQueue) X(GetDeviceQueue2) X(MapMemory) X(QueueSubmit) X(QueueSubmit2)   \
  X(QueueSubmit2KHR) X(ResetCommandBuffer) X(ResetCommandPool) X(ResetDescriptorPool)              \
  X(UnmapMemory) X(UpdateDescriptorSets)
// clang-format on

/// One function per intercepted device command, of the command's own type.
namespace hooks {
#define SMARTMEM_DECLARE_HOOK(name) std::remove_pointer_t<PFN_vk##name> name;
SMARTMEM_DEVICE_HOOKS(SMARTMEM_DECLARE_HOOK)
#undef SMARTMEM_DECLARE_HOOK
} // namespace hooks

/// The device that a VkDevice, VkQueue or VkCommandBuffer belongs to.
Device &deviceOf(void *dispatchable);

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_HOOKS_H
