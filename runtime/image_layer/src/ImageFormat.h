//===- ImageFormat.h - texel formats ----------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_IMAGEFORMAT_H
#define SMARTMEM_IMAGE_LAYER_IMAGEFORMAT_H

#include <cstdint>
#include <string_view>
#include <vulkan/vulkan_core.h>

namespace smartmem::image_layer {

/// A texel format: four components, as the 2.5D mapping packs four elements a texel.
struct ImageFormat {
  const char *name;     ///< As in the metadata grammar and in GLSL.
  uint32_t spirvFormat; ///< The ImageFormat operand of OpTypeImage.
  VkFormat vkFormat;
  uint32_t texelBytes;
  bool isFloat; ///< Whether the shader's sampled type is a float (else a 32-bit unsigned integer).
};

/// Null when the layer does not have the format.
const ImageFormat *findFormatByName(std::string_view name);
const ImageFormat *findFormatBySpirv(uint32_t spirvFormat);

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_IMAGEFORMAT_H
