//===- ImageFormat.cpp - texel formats --------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ImageFormat.h"

namespace smartmem::image_layer {

// All three are storage, sampled and texel-buffer formats that every Vulkan device must support.
static constexpr ImageFormat formats[] = {
    {"rgba32f", 1, VK_FORMAT_R32G32B32A32_SFLOAT, 16, true},
    {"rgba16f", 2, VK_FORMAT_R16G16B16A16_SFLOAT, 8, true},
    {"rgba32ui", 30, VK_FORMAT_R32G32B32A32_UINT, 16, false},
};

const ImageFormat *findFormatByName(std::string_view name) {
  for (const ImageFormat &format : formats)
    if (name == format.name)
      return &format;
  return nullptr;
}

const ImageFormat *findFormatBySpirv(uint32_t spirvFormat) {
  for (const ImageFormat &format : formats)
    if (spirvFormat == format.spirvFormat)
      return &format;
  return nullptr;
}

} // namespace smartmem::image_layer
