//===- ImageCache.h - the image of a tensor ---------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_IMAGECACHE_H
#define SMARTMEM_IMAGE_LAYER_IMAGECACHE_H

#include "ContentTracker.h"
#include "ImageAllocator.h"
#include <mutex>

namespace smartmem::image_layer {

/// Finds or makes the image for a tensor, keyed by memory range, shape and format, and retires it
/// when its tensor is dead and no command buffer names it any more. Thread-safe.
///
/// Memory is bounded by what the application itself holds: images of live tensors lie on disjoint
/// ranges of its memory; images of dead ones stay as long as a command buffer that names them is
/// neither finished nor reset, and after that in a pool of limited size.
class ImageCache {
public:
  ImageCache(const DeviceInfo &info, Statistics &statistics)
      : statistics_(statistics), allocator_(info, statistics) {}
  ~ImageCache();

  /// The image of the tensor at `range`; the caller has one use of it to release.
  Status acquire(const AddressRange &range, const ImageShape &shape, Image *&image);
  void addUse(Image &image);
  /// Ends uses: the commands that named the images have finished or will never run.
  void release(const std::vector<Image *> &images);

  /// Replays the effects of command buffers about to be submitted. Between beginSubmission and its
  /// commit or rollback no other submission may begin. On failure everything is undone already.
  /// `fresh` gets the images that still have to be moved to VK_IMAGE_LAYOUT_GENERAL.
  Status beginSubmission(const std::vector<const std::vector<Effect> *> &effects,
                         std::vector<Image *> &fresh);
  void commitSubmission(const std::vector<Image *> &fresh);
  void rollbackSubmission();

  /// The host maps memory, or no longer does.
  void mapped(const AddressRange &range);
  void unmapped(const AddressSpace &space);
  /// Memory was freed, or a sparse buffer destroyed: whatever was in it is dead.
  void dropSpace(const AddressSpace &space);

private:
  struct Key {
    AddressRange range;
    ImageShape shape;
    bool operator==(const Key &other) const { return range == other.range && shape == other.shape; }
  };
  struct KeyHash {
    size_t operator()(const Key &key) const;
  };

  void retireIfUnused(Image &image);

  std::mutex mutex_;
  Statistics &statistics_;
  ImageAllocator allocator_;
  ContentTracker contents_;
  std::unordered_map<Key, std::unique_ptr<Image>, KeyHash> images_;
  std::vector<std::unique_ptr<Image>> orphans_;
};

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_IMAGECACHE_H
