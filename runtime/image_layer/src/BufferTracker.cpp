//===- BufferTracker.cpp - where buffers lie in memory ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BufferTracker.h"

#include <mutex>

namespace smartmem::image_layer {

void BufferTracker::created(VkBuffer buffer, const VkBufferCreateInfo &info) {
  Buffer entry;
  entry.size = info.size;
  entry.flags = info.flags;
  if (info.flags & VK_BUFFER_CREATE_SPARSE_BINDING_BIT)
    entry.space = {handleValue(buffer), true};
  std::unique_lock lock(mutex_);
  buffers_[buffer] = entry;
}

void BufferTracker::bound(VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize offset) {
  std::unique_lock lock(mutex_);
  Buffer &entry = buffers_[buffer];
  entry.space = {handleValue(memory), false};
  entry.base = offset;
}

void BufferTracker::destroyed(VkBuffer buffer) {
  std::unique_lock lock(mutex_);
  buffers_.erase(buffer);
}

Status BufferTracker::resolve(VkBuffer buffer, VkDeviceSize offset, VkDeviceSize size,
                              AddressRange &range) const {
  VkBufferCreateFlags flags = 0;
  return resolveLocked(buffer, offset, size, range, flags);
}

Status BufferTracker::resolveForImage(VkBuffer buffer, VkDeviceSize offset, VkDeviceSize size,
                                      AddressRange &range) const {
  VkBufferCreateFlags flags = 0;
  SMARTMEM_RETURN_IF_ERROR(resolveLocked(buffer, offset, size, range, flags));
  if (flags & VK_BUFFER_CREATE_SPARSE_ALIASED_BIT)
    return Status::invalid("an image tensor lies in a buffer created with "
                           "VK_BUFFER_CREATE_SPARSE_ALIASED_BIT, whose memory may be written under "
                           "another name; run IREE without --vulkan_sparse_residency");
  return {};
}

Status BufferTracker::resolveLocked(VkBuffer buffer, VkDeviceSize offset, VkDeviceSize size,
                                    AddressRange &range, VkBufferCreateFlags &flags) const {
  std::shared_lock lock(mutex_);
  auto found = buffers_.find(buffer);
  if (found == buffers_.end() || found->second.space.handle == 0)
    return Status::invalid(format("buffer 0x%llx has no memory or was created before the layer was "
                                  "loaded",
                                  static_cast<unsigned long long>(handleValue(buffer))));
  const Buffer &entry = found->second;
  if (offset > entry.size || (size != VK_WHOLE_SIZE && size > entry.size - offset))
    return Status::invalid(format(
        "range %llu+%llu exceeds a buffer of %llu bytes", static_cast<unsigned long long>(offset),
        static_cast<unsigned long long>(size), static_cast<unsigned long long>(entry.size)));
  range.space = entry.space;
  range.begin = entry.base + offset;
  range.end = size == VK_WHOLE_SIZE ? entry.base + entry.size : range.begin + size;
  flags = entry.flags;
  return {};
}

} // namespace smartmem::image_layer
