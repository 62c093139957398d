//===- Metadata.h - what shaders tell the layer -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SPIR-V says which variables are images but not how large they are, so a shader carries the rest
// in OpModuleProcessed strings (ignored by every driver). One string is one line of
//
//   line     := image | kernel | canary
//   image    := "smartmem.image.v1"  { SP field }
//   field    := "set=" uint | "binding=" uint            (both required)
//             | "w=" quantity | "h=" quantity            (texels; required for 2-D and 3-D images)
//             | "d=" quantity                            (array layers or depth, where there is
//             one) | "offset=" quantity                       (bytes from the start of the bound
//             range) | "fmt=" ("rgba32f" | "rgba16f" | "rgba32ui")
//   kernel   := "smartmem.kernel.v1" { SP ("name=" word | "exact") }
//   canary   := "smartmem.canary.v1" SP "spec=" uint
//   quantity := uint | "pc" uint                         (literal, or push-constant dword by index)
//
// Numbers are decimal without sign; fields come in any order, each at most once, one space apart.
// A line that starts with "smartmem." and does not parse is an error; other lines are not ours.
// docs/image-memory.md says what the fields mean to a kernel author.
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_METADATA_H
#define SMARTMEM_IMAGE_LAYER_METADATA_H

#include "ImageFormat.h"
#include "Status.h"
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace smartmem::image_layer {

/// A number known when the shader was compiled, or found in the push constants of each dispatch.
struct Quantity {
  bool isPushConstant = false;
  uint32_t value = 0; ///< The number itself or the index of the dword.
};

/// One "smartmem.image.v1" line.
struct ImageMetadata {
  uint32_t set = 0;
  uint32_t binding = 0;
  std::optional<Quantity> width, height, depth, offset;
  const ImageFormat *format = nullptr; ///< Null when the line leaves it to OpTypeImage.
};

/// Everything a module says about itself.
struct ModuleMetadata {
  std::vector<ImageMetadata> images;
  std::string kernelName;
  /// Every storage buffer is bound to exactly the tensor that the kernel accesses through it.
  /// IREE's own kernels do not promise that: they bind a whole allocation and add offsets in the
  /// shader.
  bool exactBindings = false;
  /// Specialization constant that the layer sets to its interface version.
  std::optional<uint32_t> canarySpecId;

  bool empty() const {
    return images.empty() && kernelName.empty() && !exactBindings && !canarySpecId;
  }
};

/// Adds what `line` says to `metadata`; lines of other tools are left alone.
Status parseMetadataLine(std::string_view line, ModuleMetadata &metadata);

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_METADATA_H
