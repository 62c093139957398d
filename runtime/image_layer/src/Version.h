//===- Version.h - names and versions ---------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_VERSION_H
#define SMARTMEM_IMAGE_LAYER_VERSION_H

#include <cstdint>

namespace smartmem::image_layer {

/// The layer's name for the loader; the manifest repeats it.
inline constexpr char layerName[] = "VK_LAYER_SMARTMEM_image_memory";
inline constexpr char layerDescription[] = "Backs storage-buffer bindings with images";

/// Version of the metadata grammar and of the layer's behaviour towards kernels; the canary reads
/// it. Raised when a kernel built for the old one would go wrong. Never 0.
inline constexpr uint32_t interfaceVersion = 1;

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_VERSION_H
