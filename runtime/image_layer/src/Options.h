//===- Options.h - environment variables ------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_OPTIONS_H
#define SMARTMEM_IMAGE_LAYER_OPTIONS_H

#include "Status.h"
#include <string>

namespace smartmem::image_layer {

/// The device limits that image tensors can run into.
struct ImageLimits {
  uint32_t maxImageDimension2D = 0;
  uint32_t maxImageDimension3D = 0;
  uint32_t maxImageArrayLayers = 0;
  uint32_t maxTexelBufferElements = 0;
  VkDeviceSize minTexelBufferOffsetAlignment = 1;
};

/// How the layer behaves, from the environment:
///
///   SMARTMEM_IMAGE_LOG=0|1|2       errors only, also objects created, also every dispatch
///   SMARTMEM_IMAGE_STATS=<path>    append one JSON object per device when it is destroyed
///   SMARTMEM_IMAGE_MAX_BYTES=<n>   fail instead of holding more than n bytes of image memory
///   SMARTMEM_IMAGE_POOL_BYTES=<n>  keep at most n bytes of dead images for reuse (256 MiB)
///   SMARTMEM_IMAGE_LIMITS=<name>=<n>[,...]  lower device limits, to test fallbacks; the names are
///                                  those of VkPhysicalDeviceLimits (see ImageLimits)
struct Options {
  LogLevel logLevel = LogLevel::Error;
  std::string statisticsPath;
  VkDeviceSize maxBytes = ~VkDeviceSize(0);
  VkDeviceSize poolBytes = VkDeviceSize(256) << 20;
  std::string limits;

  bool wantsStatistics() const { return !statisticsPath.empty(); }

  static Status fromEnvironment(Options &options);
  /// Applies SMARTMEM_IMAGE_LIMITS, which can lower a limit and never raise it.
  Status lowerLimits(ImageLimits &limits) const;
};

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_OPTIONS_H
