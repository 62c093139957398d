//===- Statistics.h - what the layer did ------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_STATISTICS_H
#define SMARTMEM_IMAGE_LAYER_STATISTICS_H

#include <atomic>
#include <cstdint>
#include <string>

namespace smartmem::image_layer {

/// Counters of one device. The names are the keys of the JSON object.
struct Statistics {
  using Counter = std::atomic<uint64_t>;

  // clang-format off
#define SMARTMEM_STATISTICS(X)                                                                     \
  X(image_pipelines)     /* pipelines with a shadow layout */                                      \
  X(dispatches)          /* recorded, of every kind */                                             \
  X(dispatches_redirected) /* recorded with images or texel buffers in place of buffers */         \
  X(images_created)      /* VkImages made */                                                       \
  X(images_recycled)     /* dead images given to another tensor of the same shape */               \
  X(images_reused)       /* bindings that found their image in the cache */                        \
  X(images_evicted)      /* tensors whose image died because their bytes were overwritten */       \
  X(image_bytes)         /* device memory of all images now, the pool's included */                \
  X(image_bytes_peak)    /* the largest value of image_bytes */                                    \
  X(pool_bytes)          /* device memory of dead images kept for reuse, now */                    \
  X(texel_views_created) /* VkBufferViews made */                                                  \
  X(layout_transitions)  /* images moved to VK_IMAGE_LAYOUT_GENERAL, once each */                  \
  X(submissions)         /* batches submitted by the application */                                \
  X(submissions_with_images) /* of those, with image tensors in them */                            \
  X(bytes_as_image)      /* tensor bytes bound as images, summed over dispatches */                \
  X(bytes_as_texel_buffer) /* the same, as texel buffers */                                        \
  X(bytes_as_buffer)     /* the same, as plain buffers of redirected dispatches */                 \
  X(cpu_ns_recording)    /* CPU time of preparing dispatches, the driver's part included */        \
  X(cpu_ns_submitting)   /* CPU time that the layer adds to submissions */                         \
  X(errors)              /* failures reported */
  // clang-format on

#define SMARTMEM_DECLARE_COUNTER(name) Counter name{0};
  SMARTMEM_STATISTICS(SMARTMEM_DECLARE_COUNTER)
#undef SMARTMEM_DECLARE_COUNTER

  /// One JSON object on one line, with the device's name and the layer's version.
  std::string toJson(const char *deviceName) const;
  /// Appends toJson() to a file; a path that cannot be written is logged as an error.
  void append(const std::string &path, const char *deviceName) const;
};

/// Adds the CPU time of its scope to a counter. Reading the clock is a system call, so it is only
/// done where statistics are wanted.
class CpuTimer {
public:
  CpuTimer(Statistics::Counter &counter, bool isEnabled)
      : counter_(isEnabled ? &counter : nullptr), start_(isEnabled ? now() : 0) {}
  ~CpuTimer() { stop(); }
  CpuTimer(const CpuTimer &) = delete;
  CpuTimer &operator=(const CpuTimer &) = delete;

  void stop() {
    if (counter_)
      *counter_ += now() - start_;
    counter_ = nullptr;
  }

private:
  static uint64_t now();

  Statistics::Counter *counter_;
  uint64_t start_;
};

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_STATISTICS_H
