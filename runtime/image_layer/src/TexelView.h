//===- TexelView.h - buffer views, made on demand ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_TEXELVIEW_H
#define SMARTMEM_IMAGE_LAYER_TEXELVIEW_H

#include "ImageAllocator.h"
#include <map>
#include <mutex>
#include <tuple>

namespace smartmem::image_layer {

/// A VkBufferView, destroyed when neither the cache nor a command buffer holds it.
class TexelView {
public:
  TexelView(const DeviceInfo &info, VkBufferView handle) : info_(info), handle_(handle) {}
  ~TexelView() { info_.table.DestroyBufferView(info_.device, handle_, nullptr); }
  TexelView(const TexelView &) = delete;
  TexelView &operator=(const TexelView &) = delete;

  VkBufferView handle() const { return handle_; }

private:
  const DeviceInfo &info_;
  VkBufferView handle_;
};

/// Finds or makes the view of a buffer's range in a format. A texel buffer is the buffer itself,
/// read through the texture path, so views need no tracking of contents. Thread-safe.
class TexelViewCache {
public:
  TexelViewCache(const DeviceInfo &info, Statistics &statistics)
      : info_(info), statistics_(statistics) {}

  Status acquire(const VkDescriptorBufferInfo &range, const ImageFormat &format,
                 std::shared_ptr<TexelView> &view);
  void destroyed(VkBuffer buffer);

private:
  using Key = std::tuple<VkBuffer, VkDeviceSize, VkDeviceSize, VkFormat>;

  Status check(const VkDescriptorBufferInfo &range, const ImageFormat &format) const;

  const DeviceInfo &info_;
  Statistics &statistics_;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<TexelView>> views_;
};

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_TEXELVIEW_H
