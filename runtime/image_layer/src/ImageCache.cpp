//===- ImageCache.cpp - the image of a tensor -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ImageCache.h"

#include <algorithm>
#include <cassert>

namespace smartmem::image_layer {

size_t ImageCache::KeyHash::operator()(const Key &key) const {
  size_t hash = AddressSpaceHash()(key.range.space);
  hash = hash * 1099511628211u + std::hash<VkDeviceSize>()(key.range.begin);
  return hash * 1099511628211u + ImageShapeHash()(key.shape);
}

ImageCache::~ImageCache() {
  // The device is being destroyed, so nothing is in use: hand all to the allocator, which empties
  // its pool when it dies.
  for (auto &entry : images_)
    allocator_.recycle(std::move(entry.second));
  for (std::unique_ptr<Image> &orphan : orphans_)
    allocator_.recycle(std::move(orphan));
}

Status ImageCache::acquire(const AddressRange &range, const ImageShape &shape, Image *&image) {
  std::lock_guard lock(mutex_);
  Key key{range, shape};
  auto found = images_.find(key);
  if (found == images_.end()) {
    std::unique_ptr<Image> made;
    SMARTMEM_RETURN_IF_ERROR(allocator_.allocate(shape, made));
    made->range = range;
    found = images_.emplace(key, std::move(made)).first;
  } else {
    ++statistics_.images_reused;
  }
  image = found->second.get();
  ++image->uses;
  return {};
}

void ImageCache::addUse(Image &image) {
  std::lock_guard lock(mutex_);
  ++image.uses;
}

void ImageCache::release(const std::vector<Image *> &images) {
  if (images.empty())
    return;
  std::lock_guard lock(mutex_);
  for (Image *image : images) {
    assert(image->uses > 0 && "released more often than acquired");
    --image->uses;
    retireIfUnused(*image);
  }
}

void ImageCache::retireIfUnused(Image &image) {
  if (image.uses > 0 || image.content != Content::Invalid)
    return;
  std::unique_ptr<Image> owned;
  if (image.isOrphan) {
    auto found = std::find_if(orphans_.begin(), orphans_.end(),
                              [&](const auto &orphan) { return orphan.get() == &image; });
    owned = std::move(*found);
    orphans_.erase(found);
  } else {
    auto found = images_.find(Key{image.range, image.shape});
    owned = std::move(found->second);
    images_.erase(found);
  }
  allocator_.recycle(std::move(owned));
}

Status ImageCache::beginSubmission(const std::vector<const std::vector<Effect> *> &effects,
                                   std::vector<Image *> &fresh) {
  std::lock_guard lock(mutex_);
  for (const std::vector<Effect> *list : effects) {
    for (const Effect &effect : *list) {
      if (Status status = contents_.apply(effect); !status.ok()) {
        contents_.rollback();
        fresh.clear();
        return status;
      }
      if (effect.image && !effect.image->isInGeneralLayout)
        fresh.push_back(effect.image);
    }
  }
  std::sort(fresh.begin(), fresh.end());
  fresh.erase(std::unique(fresh.begin(), fresh.end()), fresh.end());
  return {};
}

void ImageCache::commitSubmission(const std::vector<Image *> &fresh) {
  std::lock_guard lock(mutex_);
  for (Image *image : fresh)
    image->isInGeneralLayout = true;
  for (Image *image : contents_.commit()) {
    ++statistics_.images_evicted;
    retireIfUnused(*image);
  }
}

void ImageCache::rollbackSubmission() {
  std::lock_guard lock(mutex_);
  contents_.rollback();
}

void ImageCache::mapped(const AddressRange &range) {
  std::lock_guard lock(mutex_);
  contents_.mapped(range);
}

void ImageCache::unmapped(const AddressSpace &space) {
  std::lock_guard lock(mutex_);
  contents_.unmapped(space);
}

void ImageCache::dropSpace(const AddressSpace &space) {
  std::lock_guard lock(mutex_);
  contents_.unmapped(space);
  std::vector<Image *> dropped;
  for (const auto &[key, image] : images_)
    if (key.range.space == space)
      dropped.push_back(image.get());
  for (Image *image : dropped) {
    contents_.forget(*image);
    // The handle may come back for other memory: the key must not match then.
    auto found = images_.find(Key{image->range, image->shape});
    orphans_.push_back(std::move(found->second));
    images_.erase(found);
    image->isOrphan = true;
    retireIfUnused(*image);
  }
}

} // namespace smartmem::image_layer
