//===- Status.h - errors of the image layer ---------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The layer cannot throw into the loader and most of the commands it intercepts return void, so a
// failure is a value: the VkResult that the next fallible Vulkan call will return, and the text
// that goes to the log when it does.
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_STATUS_H
#define SMARTMEM_IMAGE_LAYER_STATUS_H

#include <string>
#include <vulkan/vulkan_core.h>

namespace smartmem::image_layer {

class [[nodiscard]] Status {
public:
  Status() = default;

  /// The application (or the compiler that wrote its shaders) broke a rule of the layer.
  static Status invalid(std::string message) {
    return Status(VK_ERROR_VALIDATION_FAILED_EXT, std::move(message));
  }
  /// The device cannot do what is asked, although the request is well formed.
  static Status unsupported(std::string message) {
    return Status(VK_ERROR_FEATURE_NOT_PRESENT, std::move(message));
  }
  static Status error(VkResult result, std::string message) {
    return Status(result, std::move(message));
  }

  bool ok() const { return result_ == VK_SUCCESS; }
  VkResult result() const { return result_; }
  const std::string &message() const { return message_; }

private:
  Status(VkResult result, std::string message) : result_(result), message_(std::move(message)) {}

  VkResult result_ = VK_SUCCESS;
  std::string message_;
};

#define SMARTMEM_RETURN_IF_ERROR(expression)                                                       \
  do {                                                                                             \
    if (Status smartmemStatus_ = (expression); !smartmemStatus_.ok())                              \
      return smartmemStatus_;                                                                      \
  } while (false)

/// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string format(const char *pattern, ...);

enum class LogLevel { Error = 0, Info = 1, Trace = 2 };

/// Sets the most detailed level that is printed; errors always are.
void setLogLevel(LogLevel level);
bool isLogged(LogLevel level);
/// Prints one line to stderr (and to logcat on Android).
void log(LogLevel level, const std::string &message);

/// Logs a failure and returns its VkResult: the one way in which errors leave the layer.
VkResult report(const Status &status);

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_STATUS_H
