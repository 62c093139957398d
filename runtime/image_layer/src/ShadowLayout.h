//===- ShadowLayout.h - layouts with images in them -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_SHADOWLAYOUT_H
#define SMARTMEM_IMAGE_LAYER_SHADOWLAYOUT_H

#include "ImageAllocator.h"
#include <shared_mutex>

namespace smartmem::image_layer {

/// What the application asked for in a descriptor set layout.
struct SetLayout {
  std::vector<VkDescriptorSetLayoutBinding> bindings;
  VkDescriptorSetLayoutCreateFlags flags = 0;
  bool hasExtensions = false; ///< Created with a pNext chain, which the layer does not copy.

  bool isPush() const { return flags & VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR; }
  const VkDescriptorSetLayoutBinding *find(uint32_t binding) const;
};

/// What the application asked for in a pipeline layout.
struct PipelineLayout {
  std::vector<std::shared_ptr<const SetLayout>> sets;
  std::vector<VkPushConstantRange> pushConstants;

  /// Null when the set or the binding does not exist.
  const VkDescriptorSetLayoutBinding *find(uint32_t set, uint32_t binding) const;
  /// Bytes of push constants that compute shaders can see.
  uint32_t pushConstantBytes() const;
};

/// Remembers the application's layouts. Thread-safe.
class LayoutTracker {
public:
  void created(VkDescriptorSetLayout handle, const VkDescriptorSetLayoutCreateInfo &info);
  void created(VkPipelineLayout handle, const VkPipelineLayoutCreateInfo &info);
  void destroyed(VkDescriptorSetLayout handle);
  void destroyed(VkPipelineLayout handle);
  /// Null for a handle that the layer has not seen.
  std::shared_ptr<const PipelineLayout> find(VkPipelineLayout handle) const;

private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<VkDescriptorSetLayout, std::shared_ptr<const SetLayout>> setLayouts_;
  std::unordered_map<VkPipelineLayout, std::shared_ptr<const PipelineLayout>> pipelineLayouts_;
};

/// A descriptor type that a shadow layout puts in place of STORAGE_BUFFER.
struct Substitution {
  uint32_t set, binding;
  VkDescriptorType type;
};

/// A copy of a pipeline layout in which some storage buffers are images or texel buffers. The push
/// constant ranges are the same, so what was pushed for the original layout stays valid.
class ShadowLayout {
public:
  static Status create(const DeviceInfo &info, const PipelineLayout &original,
                       const std::vector<Substitution> &substitutions,
                       std::unique_ptr<ShadowLayout> &result);
  ~ShadowLayout();
  ShadowLayout(const ShadowLayout &) = delete;
  ShadowLayout &operator=(const ShadowLayout &) = delete;

  struct Set {
    VkDescriptorSetLayout handle = VK_NULL_HANDLE;
    bool isPush = false;
    std::vector<VkDescriptorSetLayoutBinding> bindings;
  };
  VkPipelineLayout handle() const { return handle_; }
  const std::vector<Set> &sets() const { return sets_; }

private:
  explicit ShadowLayout(const DeviceInfo &info) : info_(info) {}

  const DeviceInfo &info_;
  VkPipelineLayout handle_ = VK_NULL_HANDLE;
  std::vector<Set> sets_;
};

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_SHADOWLAYOUT_H
