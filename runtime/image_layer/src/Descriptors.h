//===- Descriptors.h - what is bound where ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_DESCRIPTORS_H
#define SMARTMEM_IMAGE_LAYER_DESCRIPTORS_H

#include "ShadowLayout.h"
#include <mutex>

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

/// Descriptor pools for shadow layouts. A command buffer takes whole pools and gives them back when
/// it is done, so that there are as many as are in flight. Thread-safe.
class ShadowPoolCache {
public:
  explicit ShadowPoolCache(const DeviceInfo &info) : info_(info) {}
  ~ShadowPoolCache();
  ShadowPoolCache(const ShadowPoolCache &) = delete;
  ShadowPoolCache &operator=(const ShadowPoolCache &) = delete;

  Status acquire(VkDescriptorPool &pool);
  void release(const std::vector<VkDescriptorPool> &pools);
  /// Allocates from the last of `pools`, to which it adds another when that is full.
  Status allocate(VkDescriptorSetLayout layout, std::vector<VkDescriptorPool> &pools,
                  VkDescriptorSet &set);

private:
  const DeviceInfo &info_;
  std::mutex mutex_;
  std::vector<VkDescriptorPool> idle_;
};

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_DESCRIPTORS_H
