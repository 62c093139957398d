//===- Options.cpp - environment variables ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace smartmem::image_layer {

static Status parseNumber(const std::string &name, const std::string &text, VkDeviceSize &result) {
  char *end = nullptr;
  errno = 0;
  unsigned long long value = strtoull(text.c_str(), &end, 10);
  bool startsWithDigit = !text.empty() && text[0] >= '0' && text[0] <= '9';
  if (!startsWithDigit || *end != '\0' || errno == ERANGE)
    return Status::error(VK_ERROR_INITIALIZATION_FAILED,
                         name + "=" + text + " is not an unsigned number");
  result = value;
  return {};
}

Status Options::fromEnvironment(Options &options) {
  auto value = [](const char *name) {
    const char *text = getenv(name);
    return std::string(text ? text : "");
  };
  auto number = [&](const char *name, VkDeviceSize &result) {
    std::string text = value(name);
    return text.empty() ? Status() : parseNumber(name, text, result);
  };
  VkDeviceSize level = 0;
  SMARTMEM_RETURN_IF_ERROR(number("SMARTMEM_IMAGE_LOG", level));
  options.logLevel = static_cast<LogLevel>(std::min<VkDeviceSize>(level, 2));
  options.statisticsPath = value("SMARTMEM_IMAGE_STATS");
  SMARTMEM_RETURN_IF_ERROR(number("SMARTMEM_IMAGE_MAX_BYTES", options.maxBytes));
  SMARTMEM_RETURN_IF_ERROR(number("SMARTMEM_IMAGE_POOL_BYTES", options.poolBytes));
  options.limits = value("SMARTMEM_IMAGE_LIMITS");
  return {};
}

Status Options::lowerLimits(ImageLimits &result) const {
  const struct {
    std::string_view name;
    uint32_t *limit;
  } known[] = {{"maxImageDimension2D", &result.maxImageDimension2D},
               {"maxImageDimension3D", &result.maxImageDimension3D},
               {"maxImageArrayLayers", &result.maxImageArrayLayers},
               {"maxTexelBufferElements", &result.maxTexelBufferElements}};
  for (size_t at = 0; at < limits.size();) {
    size_t end = std::min(limits.find(',', at), limits.size());
    std::string item = limits.substr(at, end - at);
    at = end + 1;
    size_t equals = item.find('=');
    std::string name = item.substr(0, equals);
    auto found = std::find_if(std::begin(known), std::end(known),
                              [&](const auto &entry) { return entry.name == name; });
    if (equals == std::string::npos || found == std::end(known))
      return Status::error(VK_ERROR_INITIALIZATION_FAILED,
                           "SMARTMEM_IMAGE_LIMITS: '" + item + "' is not <known limit>=<number>");
    VkDeviceSize value = 0;
    SMARTMEM_RETURN_IF_ERROR(
        parseNumber("SMARTMEM_IMAGE_LIMITS: " + name, item.substr(equals + 1), value));
    *found->limit = static_cast<uint32_t>(std::min<VkDeviceSize>(*found->limit, value));
  }
  return {};
}

} // namespace smartmem::image_layer
