//===- TexelView.cpp - buffer views, made on demand -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TexelView.h"

namespace smartmem::image_layer {

/// Above this many, views that no command buffer holds are dropped.
static constexpr size_t maxIdleViews = 1024;

Status TexelViewCache::check(const VkDescriptorBufferInfo &range, const ImageFormat &texel) const {
  VkDeviceSize elements = range.range / texel.texelBytes;
  if (range.range % texel.texelBytes != 0)
    return Status::invalid(format("a range of %llu bytes is not a whole number of %s texels",
                                  static_cast<unsigned long long>(range.range), texel.name));
  if (elements > info_.limits.maxTexelBufferElements)
    return Status::unsupported(
        format("%llu texels exceed maxTexelBufferElements = %u of this device; split the tensor or "
               "keep it in a buffer",
               static_cast<unsigned long long>(elements), info_.limits.maxTexelBufferElements));
  if (range.offset % info_.limits.minTexelBufferOffsetAlignment != 0)
    return Status::unsupported(format(
        "offset %llu is not a multiple of minTexelBufferOffsetAlignment = %llu of this device",
        static_cast<unsigned long long>(range.offset),
        static_cast<unsigned long long>(info_.limits.minTexelBufferOffsetAlignment)));
  return {};
}

Status TexelViewCache::acquire(const VkDescriptorBufferInfo &range, const ImageFormat &texel,
                               std::shared_ptr<TexelView> &view) {
  SMARTMEM_RETURN_IF_ERROR(check(range, texel));
  std::lock_guard lock(mutex_);
  std::shared_ptr<TexelView> &cached =
      views_[{range.buffer, range.offset, range.range, texel.vkFormat}];
  if (!cached) {
    VkBufferViewCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO};
    info.buffer = range.buffer;
    info.format = texel.vkFormat;
    info.offset = range.offset;
    info.range = range.range;
    VkBufferView handle = VK_NULL_HANDLE;
    if (VkResult result = info_.table.CreateBufferView(info_.device, &info, nullptr, &handle))
      return Status::error(result,
                           format("vkCreateBufferView failed for a %s texel buffer", texel.name));
    cached = std::make_shared<TexelView>(info_, handle);
    ++statistics_.texel_views_created;
  }
  view = cached;
  if (views_.size() > maxIdleViews)
    for (auto at = views_.begin(); at != views_.end();)
      at = at->second.use_count() == 1 ? views_.erase(at) : std::next(at);
  return {};
}

void TexelViewCache::destroyed(VkBuffer buffer) {
  std::lock_guard lock(mutex_);
  auto at = views_.lower_bound({buffer, 0, 0, VK_FORMAT_UNDEFINED});
  while (at != views_.end() && std::get<0>(at->first) == buffer)
    at = views_.erase(at);
}

} // namespace smartmem::image_layer
