//===- Descriptors.cpp - what is bound where --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Descriptors.h"

#include <algorithm>
#include <mutex>

namespace smartmem::image_layer {

static bool isBuffer(VkDescriptorType type) {
  return type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER || type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
}

void DescriptorContents::write(const VkWriteDescriptorSet &write) {
  if (isBuffer(write.descriptorType) && write.dstArrayElement == 0 && write.descriptorCount > 0)
    this->write(BufferDescriptor{write.dstBinding, write.descriptorType, write.pBufferInfo[0]});
}

void DescriptorContents::write(const BufferDescriptor &descriptor) {
  for (BufferDescriptor &existing : descriptors_) {
    if (existing.binding == descriptor.binding) {
      existing = descriptor;
      return;
    }
  }
  descriptors_.push_back(descriptor);
}

const BufferDescriptor *DescriptorContents::find(uint32_t binding) const {
  for (const BufferDescriptor &descriptor : descriptors_)
    if (descriptor.binding == binding)
      return &descriptor;
  return nullptr;
}

void DescriptorTracker::allocated(VkDescriptorPool pool, uint32_t count,
                                  const VkDescriptorSet *sets) {
  std::unique_lock lock(mutex_);
  std::vector<VkDescriptorSet> &owned = pools_[pool];
  owned.insert(owned.end(), sets, sets + count);
}

void DescriptorTracker::freed(VkDescriptorPool pool, uint32_t count, const VkDescriptorSet *sets) {
  std::unique_lock lock(mutex_);
  std::vector<VkDescriptorSet> &owned = pools_[pool];
  for (uint32_t index = 0; index < count; ++index) {
    sets_.erase(sets[index]);
    owned.erase(std::remove(owned.begin(), owned.end(), sets[index]), owned.end());
  }
}

void DescriptorTracker::reset(VkDescriptorPool pool) {
  std::unique_lock lock(mutex_);
  auto found = pools_.find(pool);
  if (found == pools_.end())
    return;
  for (VkDescriptorSet set : found->second)
    sets_.erase(set);
  pools_.erase(found);
}

void DescriptorTracker::updated(uint32_t writeCount, const VkWriteDescriptorSet *writes,
                                uint32_t copyCount, const VkCopyDescriptorSet *copies) {
  std::unique_lock lock(mutex_);
  for (uint32_t index = 0; index < writeCount; ++index)
    sets_[writes[index].dstSet].write(writes[index]);
  for (uint32_t index = 0; index < copyCount; ++index) {
    const VkCopyDescriptorSet &copy = copies[index];
    const BufferDescriptor *source = sets_[copy.srcSet].find(copy.srcBinding);
    if (!source || copy.srcArrayElement != 0 || copy.dstArrayElement != 0)
      continue;
    BufferDescriptor descriptor = *source;
    descriptor.binding = copy.dstBinding;
    sets_[copy.dstSet].write(descriptor);
  }
}

DescriptorContents DescriptorTracker::contents(VkDescriptorSet set) const {
  std::shared_lock lock(mutex_);
  auto found = sets_.find(set);
  return found == sets_.end() ? DescriptorContents() : found->second;
}

ShadowSetAllocator::~ShadowSetAllocator() {
  for (VkDescriptorPool pool : pools_)
    info_.table.DestroyDescriptorPool(info_.device, pool, nullptr);
}

void ShadowSetAllocator::reset() {
  for (VkDescriptorPool pool : pools_)
    info_.table.ResetDescriptorPool(info_.device, pool, 0);
  current_ = 0;
}

Status ShadowSetAllocator::allocate(VkDescriptorSetLayout layout, VkDescriptorSet &set) {
  VkDescriptorSetAllocateInfo info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  info.descriptorSetCount = 1;
  info.pSetLayouts = &layout;
  for (;; ++current_) {
    bool isNew = current_ == pools_.size();
    if (isNew)
      SMARTMEM_RETURN_IF_ERROR(addPool());
    info.descriptorPool = pools_[current_];
    VkResult result = info_.table.AllocateDescriptorSets(info_.device, &info, &set);
    if (result == VK_SUCCESS)
      return {};
    bool isFull = result == VK_ERROR_OUT_OF_POOL_MEMORY || result == VK_ERROR_FRAGMENTED_POOL;
    if (isNew || !isFull)
      return Status::error(result, "vkAllocateDescriptorSets failed for a shadow layout");
  }
}

Status ShadowSetAllocator::addPool() {
  // Enough for kernels of eight bindings, whichever kind they are.
  constexpr uint32_t sets = 64, descriptors = sets * 8;
  const VkDescriptorPoolSize sizes[] = {
      {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, descriptors},
      {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, descriptors},
      {VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, descriptors},
      {VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE, descriptors},
      {VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER, descriptors},
      {VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, descriptors},
  };
  VkDescriptorPoolCreateInfo info = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  info.maxSets = sets;
  info.poolSizeCount = std::size(sizes);
  info.pPoolSizes = sizes;
  VkDescriptorPool pool = VK_NULL_HANDLE;
  if (VkResult result = info_.table.CreateDescriptorPool(info_.device, &info, nullptr, &pool))
    return Status::error(result, "vkCreateDescriptorPool failed for shadow layouts");
  pools_.push_back(pool);
  return {};
}

} // namespace smartmem::image_layer
