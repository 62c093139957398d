//===- Descriptors.h - what is bound where ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_DESCRIPTORS_H
#define SMARTMEM_IMAGE_LAYER_DESCRIPTORS_H

#include "ShadowLayout.h"

namespace smartmem::image_layer {

/// A buffer in a descriptor.
struct BufferDescriptor {
  uint32_t binding = 0;
  VkDescriptorType type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  VkDescriptorBufferInfo buffer = {};
};

/// The buffers of one descriptor set. Other kinds of descriptors and array elements past the first
/// are not kept: pipelines with image tensors cannot have them.
class DescriptorContents {
public:
  void write(const VkWriteDescriptorSet &write);
  void write(const BufferDescriptor &descriptor);
  const BufferDescriptor *find(uint32_t binding) const;
  const std::vector<BufferDescriptor> &all() const { return descriptors_; }
  void clear() { descriptors_.clear(); }

private:
  std::vector<BufferDescriptor> descriptors_;
};

/// Remembers the contents of the application's descriptor sets. Thread-safe.
class DescriptorTracker {
public:
  void allocated(VkDescriptorPool pool, uint32_t count, const VkDescriptorSet *sets);
  void freed(VkDescriptorPool pool, uint32_t count, const VkDescriptorSet *sets);
  void reset(VkDescriptorPool pool); ///< Also when the pool is destroyed.
  void updated(uint32_t writeCount, const VkWriteDescriptorSet *writes, uint32_t copyCount,
               const VkCopyDescriptorSet *copies);
  /// A copy, as another thread may change the map.
  DescriptorContents contents(VkDescriptorSet set) const;

private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<VkDescriptorSet, DescriptorContents> sets_;
  std::unordered_map<VkDescriptorPool, std::vector<VkDescriptorSet>> pools_;
};

/// Descriptor sets for shadow layouts, for one command buffer. Grows by whole pools and never
/// frees one set: all go when the command buffer is recorded anew.
class ShadowSetAllocator {
public:
  explicit ShadowSetAllocator(const DeviceInfo &info) : info_(info) {}
  ~ShadowSetAllocator();
  ShadowSetAllocator(const ShadowSetAllocator &) = delete;
  ShadowSetAllocator &operator=(const ShadowSetAllocator &) = delete;

  Status allocate(VkDescriptorSetLayout layout, VkDescriptorSet &set);
  void reset();

private:
  Status addPool();

  const DeviceInfo &info_;
  std::vector<VkDescriptorPool> pools_;
  size_t current_ = 0; ///< Pools before this one are full.
};

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_DESCRIPTORS_H
