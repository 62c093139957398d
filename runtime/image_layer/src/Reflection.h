//===- Reflection.h - the bindings of a compute shader ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_REFLECTION_H
#define SMARTMEM_IMAGE_LAYER_REFLECTION_H

#include "Metadata.h"
#include <cstddef>
#include <string_view>

namespace smartmem::image_layer {

/// What a shader variable is.
enum class BindingKind {
  StorageBuffer,
  StorageImage,
  SampledImage,
  StorageTexelBuffer,
  UniformTexelBuffer,
  /// An image, sampler or descriptor array that the layer cannot stand in for; see `problem`.
  Unsupported,
};

/// A variable of the shader, as far as descriptors are concerned.
struct ShaderBinding {
  uint32_t set = 0;
  uint32_t binding = 0;
  BindingKind kind = BindingKind::Unsupported;
  VkImageViewType viewType = VK_IMAGE_VIEW_TYPE_2D; ///< For the two image kinds.
  const ImageFormat *format = nullptr;              ///< Null when OpTypeImage leaves it open.
  bool sampledTypeIsFloat = true;                   ///< For images and texel buffers.
  bool reads = false;
  bool writes = false;
  const char *problem = nullptr; ///< Why the kind is Unsupported.

  bool isImage() const {
    return kind == BindingKind::StorageImage || kind == BindingKind::SampledImage;
  }
  bool isTexelBuffer() const {
    return kind == BindingKind::StorageTexelBuffer || kind == BindingKind::UniformTexelBuffer;
  }
  /// The descriptor type that the shader wants. Not for Unsupported.
  VkDescriptorType descriptorType() const;
};

/// One entry point of a module.
struct ShaderInterface {
  std::vector<ShaderBinding> bindings; ///< Only those that the entry point can reach.
  ModuleMetadata metadata;
  bool usesDeviceAddresses = false; ///< The module dereferences buffer device addresses.
};

/// Reads the interface of `entryPoint` (GLCompute) from a SPIR-V module. A variable counts as read
/// or written if a reachable instruction does it, and no decoration denies it. Fails on malformed
/// metadata only: what else is wrong with the module is the driver's to say.
Status reflect(const uint32_t *words, size_t wordCount, std::string_view entryPoint,
               ShaderInterface &result);

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_REFLECTION_H
