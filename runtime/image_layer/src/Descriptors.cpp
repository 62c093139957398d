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

ShadowPoolCache::~ShadowPoolCache() {
  for (VkDescriptorPool pool : idle_)
    info_.table.DestroyDescriptorPool(info_.device, pool, nullptr);
}

Status ShadowPoolCache::acquire(VkDescriptorPool &pool) {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      pool = idle_.back();
      idle_.pop_back();
      return {};
    }
  }
  // For kernels of the usual kind; drivers set memory aside for every descriptor.
  constexpr uint32_t sets = 32;
  const VkDescriptorPoolSize sizes[] = {
      {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 3 * sets},
      {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, sets},
      {VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, 2 * sets},
      {VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE, 3 * sets},
      {VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER, sets},
      {VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, sets},
  };
  VkDescriptorPoolCreateInfo info = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  info.maxSets = sets;
  info.poolSizeCount = std::size(sizes);
  info.pPoolSizes = sizes;
  if (VkResult result = info_.table.CreateDescriptorPool(info_.device, &info, nullptr, &pool))
    return Status::error(result, "vkCreateDescriptorPool failed for shadow layouts");
  return {};
}

void ShadowPoolCache::release(const std::vector<VkDescriptorPool> &pools) {
  for (VkDescriptorPool pool : pools)
    info_.table.ResetDescriptorPool(info_.device, pool, 0);
  std::lock_guard lock(mutex_);
  idle_.insert(idle_.end(), pools.begin(), pools.end());
}

Status ShadowPoolCache::allocate(VkDescriptorSetLayout layout, std::vector<VkDescriptorPool> &pools,
                                 VkDescriptorSet &set) {
  VkDescriptorSetAllocateInfo info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  info.descriptorSetCount = 1;
  info.pSetLayouts = &layout;
  VkResult result = VK_ERROR_OUT_OF_POOL_MEMORY;
  if (!pools.empty()) {
    info.descriptorPool = pools.back();
    result = info_.table.AllocateDescriptorSets(info_.device, &info, &set);
  }
  if (result == VK_ERROR_OUT_OF_POOL_MEMORY || result == VK_ERROR_FRAGMENTED_POOL) {
    SMARTMEM_RETURN_IF_ERROR(acquire(info.descriptorPool));
    pools.push_back(info.descriptorPool);
    result = info_.table.AllocateDescriptorSets(info_.device, &info, &set);
  }
  if (result != VK_SUCCESS)
    return Status::error(result, "vkAllocateDescriptorSets failed for a shadow layout");
  return {};
}

} // namespace smartmem::image_layer
