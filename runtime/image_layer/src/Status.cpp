//===- Status.cpp - errors of the image layer -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Status.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#ifdef __ANDROID__
#include <android/log.h>
#endif

namespace smartmem::image_layer {

static std::atomic<LogLevel> currentLevel{LogLevel::Error};

std::string format(const char *pattern, ...) {
  va_list arguments, copy;
  va_start(arguments, pattern);
  va_copy(copy, arguments);
  int length = vsnprintf(nullptr, 0, pattern, arguments);
  va_end(arguments);
  std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  if (length > 0)
    vsnprintf(text.data(), text.size() + 1, pattern, copy);
  va_end(copy);
  return text;
}

void setLogLevel(LogLevel level) { currentLevel = level; }

bool isLogged(LogLevel level) { return level <= currentLevel; }

void log(LogLevel level, const std::string &message) {
  if (!isLogged(level))
    return;
  const char *severity = level == LogLevel::Error ? "error: " : "";
#ifdef __ANDROID__
  __android_log_print(level == LogLevel::Error ? ANDROID_LOG_ERROR : ANDROID_LOG_INFO,
                      "smartmem-image", "%s", message.c_str());
#endif
  // One call, so that lines of several threads do not mix.
  fprintf(stderr, "smartmem image layer: %s%s\n", severity, message.c_str());
}

VkResult report(const Status &status) {
  if (!status.ok())
    log(LogLevel::Error, status.message());
  return status.result();
}

} // namespace smartmem::image_layer
