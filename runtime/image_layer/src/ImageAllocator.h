//===- ImageAllocator.h - makes, recycles and destroys images ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_IMAGEALLOCATOR_H
#define SMARTMEM_IMAGE_LAYER_IMAGEALLOCATOR_H

#include "DispatchTable.h"
#include "Image.h"
#include "Statistics.h"
#include <memory>
#include <vector>

namespace smartmem::image_layer {

/// What making images needs of a device.
struct DeviceInfo {
  VkDevice device = VK_NULL_HANDLE;
  VkPhysicalDevice physicalDevice = VK_NULL_HANDLE;
  const InstanceTable *instanceTable = nullptr;
  DeviceTable table;
  Options options;
  ImageLimits limits;
  VkPhysicalDeviceProperties properties = {};
  VkPhysicalDeviceMemoryProperties memoryProperties = {};
  bool hasTimelineSemaphores = false;  ///< The application enabled the feature.
  std::vector<uint32_t> queueFamilies; ///< Families that the application took queues from.
};

/// Makes VkImages in memory of their own, and keeps a bounded number of dead ones for tensors of
/// the same shape. Not thread-safe: ImageCache locks.
class ImageAllocator {
public:
  ImageAllocator(const DeviceInfo &info, Statistics &statistics)
      : info_(info), statistics_(statistics) {}
  ~ImageAllocator() { trim(0); }
  ImageAllocator(const ImageAllocator &) = delete;
  ImageAllocator &operator=(const ImageAllocator &) = delete;

  /// An image of this shape, its content invalid.
  Status allocate(const ImageShape &shape, std::unique_ptr<Image> &result);
  /// Takes an image that neither the device nor any command buffer uses.
  void recycle(std::unique_ptr<Image> image);

private:
  Status create(Image &image);
  Status allocateMemory(Image &image);
  Status checkFormat(const ImageShape &shape, const VkImageCreateInfo &info) const;
  void destroy(Image &image);
  /// Destroys pooled images until at most `bytes` are held.
  void trim(VkDeviceSize bytes);

  const DeviceInfo &info_;
  Statistics &statistics_;
  std::unordered_map<ImageShape, std::vector<std::unique_ptr<Image>>, ImageShapeHash> pool_;
};

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_IMAGEALLOCATOR_H
