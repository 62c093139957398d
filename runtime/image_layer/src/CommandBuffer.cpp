//===- CommandBuffer.cpp - the state of a command buffer --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommandBuffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace smartmem::image_layer {

void CommandBuffer::reset() {
  context_.release(std::exchange(resources_, {}));
  effects_.clear();
  sets_.clear();
  pipeline_ = nullptr;
  isOneTime_ = false;
  failure_ = {};
}

void CommandBuffer::begin(VkCommandBufferUsageFlags usage) {
  reset();
  pushConstants_ = {};
  isOneTime_ = usage & VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
}

void CommandBuffer::fail(Status status) {
  if (!failure_.ok())
    return;
  ++context_.statistics.errors;
  report(status);
  failure_ = std::move(status);
}

void CommandBuffer::pushConstants(uint32_t offset, uint32_t size, const void *values) {
  if (offset < pushConstants_.size())
    memcpy(pushConstants_.data() + offset, values,
           std::min<size_t>(size, pushConstants_.size() - offset));
}

void CommandBuffer::bindSets(VkPipelineLayout layout, uint32_t first, uint32_t count,
                             const VkDescriptorSet *sets, uint32_t dynamicOffsetCount) {
  if (sets_.size() < first + count)
    sets_.resize(first + count);
  for (uint32_t index = 0; index < count; ++index) {
    sets_[first + index] = {};
    sets_[first + index].layout = layout;
    sets_[first + index].set = sets[index];
    sets_[first + index].hasDynamicOffsets = dynamicOffsetCount > 0;
  }
}

void CommandBuffer::pushDescriptors(VkPipelineLayout layout, uint32_t set, uint32_t count,
                                    const VkWriteDescriptorSet *writes) {
  if (sets_.size() <= set)
    sets_.resize(set + 1);
  BoundSet &bound = sets_[set];
  if (bound.set != VK_NULL_HANDLE || bound.layout != layout)
    bound = {};
  bound.layout = layout;
  for (uint32_t index = 0; index < count; ++index)
    bound.pushed.write(writes[index]);
  // What a shadow layout disturbed is whole again only if all of it was pushed anew.
  bound.isStale = bound.isStale && bound.pushed.all().size() > count;
}

void CommandBuffer::loadContents(size_t count) {
  static const DescriptorContents nothing;
  contents_.assign(count, &nothing);
  copies_.clear();
  for (size_t set = 0; set < std::min(count, sets_.size()); ++set) {
    if (sets_[set].set != VK_NULL_HANDLE)
      copies_.push_back(context_.descriptors.contents(sets_[set].set));
    contents_[set] = sets_[set].set == VK_NULL_HANDLE ? &sets_[set].pushed : &copies_.back();
  }
}

/// Binding a shadow layout disturbs the sets bound for the application's layout; a later dispatch
/// that relies on them must find them again.
Status CommandBuffer::restoreSets() {
  const DeviceTable &table = context_.info.table;
  for (uint32_t index = 0; index < sets_.size(); ++index) {
    BoundSet &bound = sets_[index];
    if (!bound.isStale)
      continue;
    if (bound.hasDynamicOffsets)
      return Status::invalid(
          "a command buffer mixes image tensors with dynamic buffer offsets that "
          "it does not bind anew for each dispatch");
    if (bound.set != VK_NULL_HANDLE) {
      table.CmdBindDescriptorSets(handle_, VK_PIPELINE_BIND_POINT_COMPUTE, bound.layout, index, 1,
                                  &bound.set, 0, nullptr);
    } else {
      std::vector<VkWriteDescriptorSet> writes;
      for (const BufferDescriptor &descriptor : bound.pushed.all()) {
        VkWriteDescriptorSet write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
        write.dstBinding = descriptor.binding;
        write.descriptorCount = 1;
        write.descriptorType = descriptor.type;
        write.pBufferInfo = &descriptor.buffer;
        writes.push_back(write);
      }
      if (!writes.empty())
        table.CmdPushDescriptorSetKHR(handle_, VK_PIPELINE_BIND_POINT_COMPUTE, bound.layout, index,
                                      static_cast<uint32_t>(writes.size()), writes.data());
    }
    bound.isStale = false;
  }
  return {};
}

bool CommandBuffer::prepareDispatch() {
  ++context_.statistics.dispatches;
  if (!pipeline_ || !context_.pipelines.hasImagePipelines())
    return true;
  if (!failure_.ok())
    return false;
  CpuTimer timer(context_.statistics.cpu_ns_recording, context_.info.options.wantsStatistics());
  Status status;
  if (pipeline_->shadow) {
    status = recordRedirected();
  } else {
    status = restoreSets();
    loadContents(sets_.size());
    noteBuffers();
  }
  effects_.insert(effects_.end(), writes_.begin(), writes_.end());
  writes_.clear();
  if (!status.ok())
    fail(Status::error(status.result(), "kernel '" + pipeline_->name + "', " + status.message()));
  return failure_.ok();
}

void CommandBuffer::noteTransfer(Effect::Kind kind, const char *actor, VkBuffer buffer,
                                 VkDeviceSize offset, VkDeviceSize size) {
  if (!context_.pipelines.hasImagePipelines())
    return;
  AddressRange range;
  // A buffer that the layer does not know has no image in it.
  if (context_.buffers.resolve(buffer, offset, size, range).ok())
    effects_.push_back({kind, true, Effect::noBinding, nullptr, actor, range});
}

void CommandBuffer::execute(const CommandBuffer &secondary) {
  if (!secondary.failure_.ok())
    fail(secondary.failure_);
  effects_.insert(effects_.end(), secondary.effects_.begin(), secondary.effects_.end());
  for (Image *image : secondary.resources_.images) {
    context_.images.addUse(*image);
    resources_.images.push_back(image);
  }
  resources_.views.insert(resources_.views.end(), secondary.resources_.views.begin(),
                          secondary.resources_.views.end());
  // Executing a secondary command buffer makes all bound state undefined.
  sets_.clear();
  pipeline_ = nullptr;
}

RecordedResources CommandBuffer::takeResources() {
  effects_.clear();
  return std::exchange(resources_, {});
}

} // namespace smartmem::image_layer
