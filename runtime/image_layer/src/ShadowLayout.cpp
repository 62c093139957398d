//===- ShadowLayout.cpp - layouts with images in them -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ShadowLayout.h"

#include <algorithm>
#include <mutex>

namespace smartmem::image_layer {

const VkDescriptorSetLayoutBinding *SetLayout::find(uint32_t binding) const {
  for (const VkDescriptorSetLayoutBinding &entry : bindings)
    if (entry.binding == binding)
      return &entry;
  return nullptr;
}

const VkDescriptorSetLayoutBinding *PipelineLayout::find(uint32_t set, uint32_t binding) const {
  return set < sets.size() && sets[set] ? sets[set]->find(binding) : nullptr;
}

uint32_t PipelineLayout::pushConstantBytes() const {
  uint32_t bytes = 0;
  for (const VkPushConstantRange &range : pushConstants)
    if (range.stageFlags & VK_SHADER_STAGE_COMPUTE_BIT)
      bytes = std::max(bytes, range.offset + range.size);
  return bytes;
}

void LayoutTracker::created(VkDescriptorSetLayout handle,
                            const VkDescriptorSetLayoutCreateInfo &info) {
  auto layout = std::make_shared<SetLayout>();
  layout->bindings.assign(info.pBindings, info.pBindings + info.bindingCount);
  for (VkDescriptorSetLayoutBinding &binding : layout->bindings)
    binding.pImmutableSamplers = nullptr; // The array is the application's, and of no use here.
  layout->flags = info.flags;
  layout->hasExtensions = info.pNext != nullptr;
  std::unique_lock lock(mutex_);
  setLayouts_[handle] = std::move(layout);
}

void LayoutTracker::created(VkPipelineLayout handle, const VkPipelineLayoutCreateInfo &info) {
  auto layout = std::make_shared<PipelineLayout>();
  layout->pushConstants.assign(info.pPushConstantRanges,
                               info.pPushConstantRanges + info.pushConstantRangeCount);
  std::unique_lock lock(mutex_);
  for (uint32_t set = 0; set < info.setLayoutCount; ++set) {
    auto found = setLayouts_.find(info.pSetLayouts[set]);
    layout->sets.push_back(found == setLayouts_.end() ? nullptr : found->second);
  }
  pipelineLayouts_[handle] = std::move(layout);
}

void LayoutTracker::destroyed(VkDescriptorSetLayout handle) {
  std::unique_lock lock(mutex_);
  setLayouts_.erase(handle);
}

void LayoutTracker::destroyed(VkPipelineLayout handle) {
  std::unique_lock lock(mutex_);
  pipelineLayouts_.erase(handle);
}

std::shared_ptr<const PipelineLayout> LayoutTracker::find(VkPipelineLayout handle) const {
  std::shared_lock lock(mutex_);
  auto found = pipelineLayouts_.find(handle);
  return found == pipelineLayouts_.end() ? nullptr : found->second;
}

Status ShadowLayout::create(const DeviceInfo &info, const PipelineLayout &original,
                            const std::vector<Substitution> &substitutions,
                            std::unique_ptr<ShadowLayout> &result) {
  std::unique_ptr<ShadowLayout> layout(new ShadowLayout(info));
  for (uint32_t index = 0; index < original.sets.size(); ++index) {
    const std::shared_ptr<const SetLayout> &from = original.sets[index];
    constexpr VkDescriptorSetLayoutCreateFlags knownFlags =
        VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR;
    if (!from || from->hasExtensions || (from->flags & ~knownFlags))
      return Status::invalid(
          format("descriptor set layout %u of a pipeline with image tensors uses "
                 "extensions that the layer does not know",
                 index));
    Set set;
    set.isPush = from->isPush();
    set.bindings = from->bindings;
    for (VkDescriptorSetLayoutBinding &binding : set.bindings) {
      for (const Substitution &substitution : substitutions)
        if (substitution.set == index && substitution.binding == binding.binding)
          binding.descriptorType = substitution.type;
      if (binding.descriptorCount != 1)
        return Status::invalid(
            format("set %u binding %u: a pipeline with image tensors cannot have arrays of "
                   "descriptors",
                   index, binding.binding));
    }
    VkDescriptorSetLayoutCreateInfo create = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    create.flags = from->flags;
    create.bindingCount = static_cast<uint32_t>(set.bindings.size());
    create.pBindings = set.bindings.data();
    if (VkResult error =
            info.table.CreateDescriptorSetLayout(info.device, &create, nullptr, &set.handle))
      return Status::error(error, "vkCreateDescriptorSetLayout failed for a layout with images");
    layout->sets_.push_back(std::move(set));
  }

  std::vector<VkDescriptorSetLayout> handles;
  for (const Set &set : layout->sets_)
    handles.push_back(set.handle);
  VkPipelineLayoutCreateInfo create = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  create.setLayoutCount = static_cast<uint32_t>(handles.size());
  create.pSetLayouts = handles.data();
  create.pushConstantRangeCount = static_cast<uint32_t>(original.pushConstants.size());
  create.pPushConstantRanges = original.pushConstants.data();
  if (VkResult error =
          info.table.CreatePipelineLayout(info.device, &create, nullptr, &layout->handle_))
    return Status::error(error, "vkCreatePipelineLayout failed for a layout with images");
  result = std::move(layout);
  return {};
}

ShadowLayout::~ShadowLayout() {
  info_.table.DestroyPipelineLayout(info_.device, handle_, nullptr);
  for (const Set &set : sets_)
    info_.table.DestroyDescriptorSetLayout(info_.device, set.handle, nullptr);
}

} // namespace smartmem::image_layer
