//===- Statistics.cpp - what the layer did ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Statistics.h"

#include "Status.h"
#include "Version.h"
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace smartmem::image_layer {

std::string Statistics::toJson(const char *deviceName) const {
  std::string json = format("{\"layer_version\": %u, \"device\": \"", interfaceVersion);
  for (const char *at = deviceName; *at; ++at) {
    if (*at == '"' || *at == '\\')
      json += '\\';
    if (static_cast<unsigned char>(*at) >= 0x20)
      json += *at;
  }
  json += '"';
#define SMARTMEM_PRINT(name)                                                                       \
  json += format(", \"" #name "\": %llu", static_cast<unsigned long long>(name.load()));
  SMARTMEM_STATISTICS(SMARTMEM_PRINT)
#undef SMARTMEM_PRINT
  return json + "}\n";
}

void Statistics::append(const std::string &path, const char *deviceName) const {
  std::string json = toJson(deviceName);
  FILE *file = fopen(path.c_str(), "ae");
  bool written = file && fwrite(json.data(), 1, json.size(), file) == json.size();
  if (file && fclose(file) != 0)
    written = false;
  if (!written)
    log(LogLevel::Error, "cannot write statistics to " + path + ": " + strerror(errno));
}

uint64_t CpuTimer::now() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

} // namespace smartmem::image_layer
