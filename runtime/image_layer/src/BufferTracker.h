//===- BufferTracker.h - where buffers lie in memory ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_BUFFERTRACKER_H
#define SMARTMEM_IMAGE_LAYER_BUFFERTRACKER_H

#include "Status.h"
#include <shared_mutex>
#include <unordered_map>

namespace smartmem::image_layer {

/// What ranges are counted in: a VkDeviceMemory, so that two buffers on the same memory are seen to
/// alias; or, for a sparse buffer, the VkBuffer itself.
struct AddressSpace {
  uint64_t handle = 0;
  bool isSparseBuffer = false;

  bool operator==(const AddressSpace &other) const {
    return handle == other.handle && isSparseBuffer == other.isSparseBuffer;
  }
};

struct AddressSpaceHash {
  size_t operator()(const AddressSpace &space) const {
    return std::hash<uint64_t>()(space.handle * 2 + space.isSparseBuffer);
  }
};

/// Bytes [begin, end) of an address space.
struct AddressRange {
  AddressSpace space;
  VkDeviceSize begin = 0;
  VkDeviceSize end = 0;

  VkDeviceSize size() const { return end - begin; }
  /// Whether `other`, of the same space, lies wholly in this range.
  bool contains(const AddressRange &other) const {
    return begin <= other.begin && other.end <= end;
  }
  /// Whether `other`, of the same space, shares a byte with this range.
  bool overlaps(const AddressRange &other) const { return begin < other.end && other.begin < end; }
  bool operator==(const AddressRange &other) const {
    return space == other.space && begin == other.begin && end == other.end;
  }
};

/// Non-dispatchable handles are pointers or integers, by platform.
template <typename Handle> uint64_t handleValue(Handle handle) { return (uint64_t)(handle); }

/// Knows the size and the memory of every buffer. Thread-safe.
class BufferTracker {
public:
  void created(VkBuffer buffer, const VkBufferCreateInfo &info);
  void bound(VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize offset);
  void destroyed(VkBuffer buffer);

  /// The range that a (buffer, offset, size) triple of the API names; VK_WHOLE_SIZE is understood.
  Status resolve(VkBuffer buffer, VkDeviceSize offset, VkDeviceSize size,
                 AddressRange &range) const;
  /// Like resolve, for a tensor that is to live in an image: refuses memory that may be aliased
  /// behind the layer's back.
  Status resolveForImage(VkBuffer buffer, VkDeviceSize offset, VkDeviceSize size,
                         AddressRange &range) const;

private:
  struct Buffer {
    VkDeviceSize size = 0;
    VkBufferCreateFlags flags = 0;
    AddressSpace space;
    VkDeviceSize base = 0; ///< Of the buffer's first byte in `space`.
  };

  Status resolveLocked(VkBuffer buffer, VkDeviceSize offset, VkDeviceSize size, AddressRange &range,
                       VkBufferCreateFlags &flags) const;

  mutable std::shared_mutex mutex_;
  std::unordered_map<VkBuffer, Buffer> buffers_;
};

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_BUFFERTRACKER_H
