//===- Image.h - an image that holds a tensor -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_IMAGE_H
#define SMARTMEM_IMAGE_LAYER_IMAGE_H

#include "BufferTracker.h"
#include "ImageFormat.h"
#include "Options.h"

namespace smartmem::image_layer {

/// The extents of an image tensor, as the shader declares them.
struct ImageShape {
  VkImageViewType viewType = VK_IMAGE_VIEW_TYPE_2D;
  const ImageFormat *format = nullptr;
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t depth = 1; ///< Depth of a 3-D image, layers of an array, else 1.

  bool operator==(const ImageShape &other) const {
    return viewType == other.viewType && format == other.format && width == other.width &&
           height == other.height && depth == other.depth;
  }
  /// Size of the texels without any padding; at most 2^100, so checked.
  bool byteSize(VkDeviceSize &bytes) const;
  /// For messages: "64x32 rgba32f image", "64x32x3 rgba16f 3-D image".
  std::string toString() const;
  /// Whether a device with these limits can have such an image.
  Status check(const ImageLimits &limits) const;
};

struct ImageShapeHash {
  size_t operator()(const ImageShape &shape) const;
};

/// What the texels of an image stand for.
enum class Content {
  Invalid,   ///< Nothing: never written, or its tensor is dead.
  Valid,     ///< A tensor, whose bytes in the buffer are stale.
  Uncertain, ///< As Valid, unless something that the layer cannot follow overwrote the tensor.
};

/// An image and the tensor that it holds at the moment. Owned by ImageCache.
struct Image {
  AddressRange range; ///< The tensor's place in the application's memory.
  ImageShape shape;
  VkImage image = VK_NULL_HANDLE;
  VkImageView view = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkDeviceSize memoryBytes = 0;
  Content content = Content::Invalid;
  bool isInGeneralLayout = false; ///< False until the first submission that uses it.
  bool isOrphan = false;          ///< The tensor's memory was freed; nobody will look it up again.
  uint32_t uses = 0;              ///< Recorded or executing command buffers that name it.
};

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_IMAGE_H
