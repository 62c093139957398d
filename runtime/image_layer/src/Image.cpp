//===- Image.cpp - an image that holds a tensor -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Image.h"

namespace smartmem::image_layer {

bool ImageShape::byteSize(VkDeviceSize &bytes) const {
  bytes = format->texelBytes;
  for (uint32_t extent : {width, height, depth})
    if (__builtin_mul_overflow(bytes, VkDeviceSize(extent), &bytes))
      return false;
  return true;
}

std::string ImageShape::toString() const {
  std::string text = image_layer::format("%ux%u", width, height);
  if (viewType != VK_IMAGE_VIEW_TYPE_2D)
    text += image_layer::format("x%u", depth);
  text += std::string(" ") + format->name;
  switch (viewType) {
  case VK_IMAGE_VIEW_TYPE_3D:
    return text + " 3-D image";
  case VK_IMAGE_VIEW_TYPE_2D_ARRAY:
    return text + " array image";
  default:
    return text + " image";
  }
}

Status ImageShape::check(const ImageLimits &limits) const {
  auto check = [&](uint32_t extent, uint32_t limit, const char *limitName) -> Status {
    if (extent == 0)
      return Status::invalid("an extent of the " + toString() + " is zero");
    if (extent > limit)
      return Status::unsupported(
          image_layer::format("%s: %u texels exceed %s = %u of this device; split the tensor or "
                              "keep it in a buffer",
                              toString().c_str(), extent, limitName, limit));
    return {};
  };
  if (viewType == VK_IMAGE_VIEW_TYPE_3D) {
    for (uint32_t extent : {width, height, depth})
      SMARTMEM_RETURN_IF_ERROR(check(extent, limits.maxImageDimension3D, "maxImageDimension3D"));
    return {};
  }
  SMARTMEM_RETURN_IF_ERROR(check(width, limits.maxImageDimension2D, "maxImageDimension2D"));
  SMARTMEM_RETURN_IF_ERROR(check(height, limits.maxImageDimension2D, "maxImageDimension2D"));
  return check(depth, limits.maxImageArrayLayers, "maxImageArrayLayers");
}

size_t ImageShapeHash::operator()(const ImageShape &shape) const {
  size_t hash = std::hash<const void *>()(shape.format);
  for (uint32_t value : {uint32_t(shape.viewType), shape.width, shape.height, shape.depth})
    hash = hash * 1099511628211u + value;
  return hash;
}

} // namespace smartmem::image_layer
