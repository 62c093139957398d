//===- ImageAllocator.cpp - makes, recycles and destroys images -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ImageAllocator.h"

#include <algorithm>

namespace smartmem::image_layer {

Status ImageAllocator::allocate(const ImageShape &shape, std::unique_ptr<Image> &result) {
  auto bucket = pool_.find(shape);
  if (bucket != pool_.end()) {
    result = std::move(bucket->second.back());
    bucket->second.pop_back();
    if (bucket->second.empty())
      pool_.erase(bucket);
    statistics_.pool_bytes -= result->memoryBytes;
    ++statistics_.images_recycled;
    return {};
  }
  auto image = std::make_unique<Image>();
  image->shape = shape;
  Status status = create(*image);
  if (!status.ok()) {
    destroy(*image);
    return status;
  }
  ++statistics_.images_created;
  if (isLogged(LogLevel::Info))
    log(LogLevel::Info, format("new %s, %llu bytes", shape.toString().c_str(),
                               static_cast<unsigned long long>(image->memoryBytes)));
  result = std::move(image);
  return {};
}

void ImageAllocator::recycle(std::unique_ptr<Image> image) {
  image->content = Content::Invalid;
  image->isOrphan = false;
  statistics_.pool_bytes += image->memoryBytes;
  pool_[image->shape].push_back(std::move(image));
  trim(info_.options.poolBytes);
}

void ImageAllocator::trim(VkDeviceSize bytes) {
  while (statistics_.pool_bytes > bytes && !pool_.empty()) {
    auto bucket = pool_.begin();
    std::unique_ptr<Image> image = std::move(bucket->second.back());
    bucket->second.pop_back();
    if (bucket->second.empty())
      pool_.erase(bucket);
    statistics_.pool_bytes -= image->memoryBytes;
    destroy(*image);
  }
}

void ImageAllocator::destroy(Image &image) {
  info_.table.DestroyImageView(info_.device, image.view, nullptr);
  info_.table.DestroyImage(info_.device, image.image, nullptr);
  info_.table.FreeMemory(info_.device, image.memory, nullptr);
  if (image.memory)
    statistics_.image_bytes -= image.memoryBytes;
}

Status ImageAllocator::create(Image &image) {
  const ImageShape &shape = image.shape;
  SMARTMEM_RETURN_IF_ERROR(shape.check(info_.limits));
  bool is3D = shape.viewType == VK_IMAGE_VIEW_TYPE_3D;

  VkImageCreateInfo info = {VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
  info.imageType = is3D ? VK_IMAGE_TYPE_3D : VK_IMAGE_TYPE_2D;
  info.format = shape.format->vkFormat;
  info.extent = {shape.width, shape.height, is3D ? shape.depth : 1};
  info.mipLevels = 1;
  info.arrayLayers = is3D ? 1 : shape.depth;
  info.samples = VK_SAMPLE_COUNT_1_BIT;
  info.tiling = VK_IMAGE_TILING_OPTIMAL;
  info.usage = VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_SAMPLED_BIT;
  // The application orders its queues by semaphores and knows nothing of images, so there is nobody
  // to transfer ownership between families.
  if (info_.queueFamilies.size() > 1) {
    info.sharingMode = VK_SHARING_MODE_CONCURRENT;
    info.queueFamilyIndexCount = static_cast<uint32_t>(info_.queueFamilies.size());
    info.pQueueFamilyIndices = info_.queueFamilies.data();
  }
  SMARTMEM_RETURN_IF_ERROR(checkFormat(shape, info));
  if (VkResult result = info_.table.CreateImage(info_.device, &info, nullptr, &image.image))
    return Status::error(result, "vkCreateImage failed for a " + shape.toString());
  SMARTMEM_RETURN_IF_ERROR(allocateMemory(image));

  VkImageViewCreateInfo view = {VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
  view.image = image.image;
  view.viewType = shape.viewType;
  view.format = info.format;
  view.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, info.arrayLayers};
  if (VkResult result = info_.table.CreateImageView(info_.device, &view, nullptr, &image.view))
    return Status::error(result, "vkCreateImageView failed for a " + shape.toString());
  return {};
}

Status ImageAllocator::checkFormat(const ImageShape &shape, const VkImageCreateInfo &info) const {
  VkImageFormatProperties properties = {};
  VkResult result = info_.instanceTable->GetPhysicalDeviceImageFormatProperties(
      info_.physicalDevice, info.format, info.imageType, info.tiling, info.usage, info.flags,
      &properties);
  bool fits = info.extent.width <= properties.maxExtent.width &&
              info.extent.height <= properties.maxExtent.height &&
              info.extent.depth <= properties.maxExtent.depth &&
              info.arrayLayers <= properties.maxArrayLayers;
  if (result != VK_SUCCESS || !fits)
    return Status::unsupported("this device has no " + shape.toString() +
                               " with storage and sampled usage; keep the tensor in a buffer");
  return {};
}

Status ImageAllocator::allocateMemory(Image &image) {
  VkMemoryRequirements requirements;
  info_.table.GetImageMemoryRequirements(info_.device, image.image, &requirements);

  const VkPhysicalDeviceMemoryProperties &memory = info_.memoryProperties;
  uint32_t chosen = memory.memoryTypeCount;
  for (uint32_t type = 0; type < memory.memoryTypeCount; ++type) {
    if (!(requirements.memoryTypeBits >> type & 1))
      continue;
    bool isLocal = memory.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    if (chosen == memory.memoryTypeCount || isLocal)
      chosen = type;
    if (isLocal)
      break;
  }

  auto exceedsBudget = [&] {
    return statistics_.image_bytes + requirements.size > info_.options.maxBytes;
  };
  if (exceedsBudget())
    trim(0);
  if (exceedsBudget())
    return Status::error(
        VK_ERROR_OUT_OF_DEVICE_MEMORY,
        format("a %s of %llu bytes exceeds SMARTMEM_IMAGE_MAX_BYTES=%llu with %llu bytes in use",
               image.shape.toString().c_str(), static_cast<unsigned long long>(requirements.size),
               static_cast<unsigned long long>(info_.options.maxBytes),
               static_cast<unsigned long long>(statistics_.image_bytes.load())));

  VkMemoryAllocateInfo allocate = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  allocate.allocationSize = requirements.size;
  allocate.memoryTypeIndex = chosen;
  VkResult result = info_.table.AllocateMemory(info_.device, &allocate, nullptr, &image.memory);
  if (result != VK_SUCCESS && statistics_.pool_bytes > 0) {
    trim(0);
    result = info_.table.AllocateMemory(info_.device, &allocate, nullptr, &image.memory);
  }
  if (result == VK_SUCCESS) {
    image.memoryBytes = requirements.size;
    statistics_.image_bytes += requirements.size;
    statistics_.image_bytes_peak =
        std::max(statistics_.image_bytes_peak.load(), statistics_.image_bytes.load());
    result = info_.table.BindImageMemory(info_.device, image.image, image.memory, 0);
  }
  if (result != VK_SUCCESS)
    return Status::error(result,
                         format("no memory for a %s of %llu bytes", image.shape.toString().c_str(),
                                static_cast<unsigned long long>(requirements.size)));
  return {};
}

} // namespace smartmem::image_layer
