//===- ResourceHooks.cpp - buffers, layouts, pipelines, descriptors ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Hooks.h"

namespace smartmem::image_layer::hooks {

//===----------------------------------------------------------------------===//
// Buffers and memory
//===----------------------------------------------------------------------===//

VKAPI_ATTR VkResult VKAPI_CALL CreateBuffer(VkDevice handle, const VkBufferCreateInfo *info,
                                            const VkAllocationCallbacks *allocator,
                                            VkBuffer *buffer) {
  Device &device = deviceOf(handle);
  // Which buffers will be bound as texel buffers is not known yet.
  VkBufferCreateInfo extended = *info;
  if (info->usage & VK_BUFFER_USAGE_STORAGE_BUFFER_BIT)
    extended.usage |=
        VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT;
  VkResult result = device.table().CreateBuffer(handle, &extended, allocator, buffer);
  if (result == VK_SUCCESS)
    device.buffers.created(*buffer, *info);
  return result;
}

VKAPI_ATTR void VKAPI_CALL DestroyBuffer(VkDevice handle, VkBuffer buffer,
                                         const VkAllocationCallbacks *allocator) {
  Device &device = deviceOf(handle);
  device.views.destroyed(buffer);
  device.images.dropSpace({handleValue(buffer), /*isSparseBuffer=*/true});
  device.buffers.destroyed(buffer);
  device.table().DestroyBuffer(handle, buffer, allocator);
}

VKAPI_ATTR VkResult VKAPI_CALL BindBufferMemory(VkDevice handle, VkBuffer buffer,
                                                VkDeviceMemory memory, VkDeviceSize offset) {
  Device &device = deviceOf(handle);
  device.buffers.bound(buffer, memory, offset);
  return device.table().BindBufferMemory(handle, buffer, memory, offset);
}

static void bindBuffers(Device &device, uint32_t count, const VkBindBufferMemoryInfo *infos) {
  for (uint32_t index = 0; index < count; ++index)
    device.buffers.bound(infos[index].buffer, infos[index].memory, infos[index].memoryOffset);
}

VKAPI_ATTR VkResult VKAPI_CALL BindBufferMemory2(VkDevice handle, uint32_t count,
                                                 const VkBindBufferMemoryInfo *infos) {
  Device &device = deviceOf(handle);
  bindBuffers(device, count, infos);
  return device.table().BindBufferMemory2(handle, count, infos);
}

VKAPI_ATTR VkResult VKAPI_CALL BindBufferMemory2KHR(VkDevice handle, uint32_t count,
                                                    const VkBindBufferMemoryInfo *infos) {
  Device &device = deviceOf(handle);
  bindBuffers(device, count, infos);
  return device.table().BindBufferMemory2KHR(handle, count, infos);
}

VKAPI_ATTR void VKAPI_CALL FreeMemory(VkDevice handle, VkDeviceMemory memory,
                                      const VkAllocationCallbacks *allocator) {
  Device &device = deviceOf(handle);
  device.images.dropSpace({handleValue(memory), /*isSparseBuffer=*/false});
  device.table().FreeMemory(handle, memory, allocator);
}

VKAPI_ATTR VkResult VKAPI_CALL MapMemory(VkDevice handle, VkDeviceMemory memory,
                                         VkDeviceSize offset, VkDeviceSize size,
                                         VkMemoryMapFlags flags, void **data) {
  Device &device = deviceOf(handle);
  AddressRange range{{handleValue(memory), /*isSparseBuffer=*/false}, offset, ~VkDeviceSize(0)};
  if (size != VK_WHOLE_SIZE)
    range.end = offset + size;
  device.images.mapped(range);
  return device.table().MapMemory(handle, memory, offset, size, flags, data);
}

VKAPI_ATTR void VKAPI_CALL UnmapMemory(VkDevice handle, VkDeviceMemory memory) {
  Device &device = deviceOf(handle);
  device.images.unmapped({handleValue(memory), /*isSparseBuffer=*/false});
  device.table().UnmapMemory(handle, memory);
}

//===----------------------------------------------------------------------===//
// Layouts, shaders, pipelines
//===----------------------------------------------------------------------===//

VKAPI_ATTR VkResult VKAPI_CALL
CreateDescriptorSetLayout(VkDevice handle, const VkDescriptorSetLayoutCreateInfo *info,
                          const VkAllocationCallbacks *allocator, VkDescriptorSetLayout *layout) {
  Device &device = deviceOf(handle);
  VkResult result = device.table().CreateDescriptorSetLayout(handle, info, allocator, layout);
  if (result == VK_SUCCESS)
    device.layouts.created(*layout, *info);
  return result;
}

VKAPI_ATTR void VKAPI_CALL DestroyDescriptorSetLayout(VkDevice handle, VkDescriptorSetLayout layout,
                                                      const VkAllocationCallbacks *allocator) {
  Device &device = deviceOf(handle);
  device.layouts.destroyed(layout);
  device.table().DestroyDescriptorSetLayout(handle, layout, allocator);
}

VKAPI_ATTR VkResult VKAPI_CALL CreatePipelineLayout(VkDevice handle,
                                                    const VkPipelineLayoutCreateInfo *info,
                                                    const VkAllocationCallbacks *allocator,
                                                    VkPipelineLayout *layout) {
  Device &device = deviceOf(handle);
  VkResult result = device.table().CreatePipelineLayout(handle, info, allocator, layout);
  if (result == VK_SUCCESS)
    device.layouts.created(*layout, *info);
  return result;
}

VKAPI_ATTR void VKAPI_CALL DestroyPipelineLayout(VkDevice handle, VkPipelineLayout layout,
                                                 const VkAllocationCallbacks *allocator) {
  Device &device = deviceOf(handle);
  device.layouts.destroyed(layout);
  device.table().DestroyPipelineLayout(handle, layout, allocator);
}

VKAPI_ATTR VkResult VKAPI_CALL CreateShaderModule(VkDevice handle,
                                                  const VkShaderModuleCreateInfo *info,
                                                  const VkAllocationCallbacks *allocator,
                                                  VkShaderModule *module) {
  Device &device = deviceOf(handle);
  VkResult result = device.table().CreateShaderModule(handle, info, allocator, module);
  if (result == VK_SUCCESS)
    device.pipelines.created(*module, *info);
  return result;
}

VKAPI_ATTR void VKAPI_CALL DestroyShaderModule(VkDevice handle, VkShaderModule module,
                                               const VkAllocationCallbacks *allocator) {
  Device &device = deviceOf(handle);
  device.pipelines.destroyed(module);
  device.table().DestroyShaderModule(handle, module, allocator);
}

VKAPI_ATTR VkResult VKAPI_CALL CreateComputePipelines(VkDevice handle, VkPipelineCache cache,
                                                      uint32_t count,
                                                      const VkComputePipelineCreateInfo *infos,
                                                      const VkAllocationCallbacks *allocator,
                                                      VkPipeline *pipelines) {
  return deviceOf(handle).pipelines.create(cache, count, infos, allocator, pipelines);
}

VKAPI_ATTR void VKAPI_CALL DestroyPipeline(VkDevice handle, VkPipeline pipeline,
                                           const VkAllocationCallbacks *allocator) {
  Device &device = deviceOf(handle);
  device.pipelines.destroyed(pipeline);
  device.table().DestroyPipeline(handle, pipeline, allocator);
}

//===----------------------------------------------------------------------===//
// Descriptor sets
//===----------------------------------------------------------------------===//

VKAPI_ATTR VkResult VKAPI_CALL AllocateDescriptorSets(VkDevice handle,
                                                      const VkDescriptorSetAllocateInfo *info,
                                                      VkDescriptorSet *sets) {
  Device &device = deviceOf(handle);
  VkResult result = device.table().AllocateDescriptorSets(handle, info, sets);
  if (result == VK_SUCCESS)
    device.descriptors.allocated(info->descriptorPool, info->descriptorSetCount, sets);
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL FreeDescriptorSets(VkDevice handle, VkDescriptorPool pool,
                                                  uint32_t count, const VkDescriptorSet *sets) {
  Device &device = deviceOf(handle);
  device.descriptors.freed(pool, count, sets);
  return device.table().FreeDescriptorSets(handle, pool, count, sets);
}

VKAPI_ATTR VkResult VKAPI_CALL ResetDescriptorPool(VkDevice handle, VkDescriptorPool pool,
                                                   VkDescriptorPoolResetFlags flags) {
  Device &device = deviceOf(handle);
  device.descriptors.reset(pool);
  return device.table().ResetDescriptorPool(handle, pool, flags);
}

VKAPI_ATTR void VKAPI_CALL DestroyDescriptorPool(VkDevice handle, VkDescriptorPool pool,
                                                 const VkAllocationCallbacks *allocator) {
  Device &device = deviceOf(handle);
  device.descriptors.reset(pool);
  device.table().DestroyDescriptorPool(handle, pool, allocator);
}

VKAPI_ATTR void VKAPI_CALL UpdateDescriptorSets(VkDevice handle, uint32_t writeCount,
                                                const VkWriteDescriptorSet *writes,
                                                uint32_t copyCount,
                                                const VkCopyDescriptorSet *copies) {
  Device &device = deviceOf(handle);
  device.descriptors.updated(writeCount, writes, copyCount, copies);
  device.table().UpdateDescriptorSets(handle, writeCount, writes, copyCount, copies);
}

} // namespace smartmem::image_layer::hooks
