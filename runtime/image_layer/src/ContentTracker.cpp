//===- ContentTracker.cpp - which images hold live tensors ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ContentTracker.h"

#include <algorithm>

namespace smartmem::image_layer {

/// "kernel 'matmul', binding 2" or "vkCmdCopyBuffer".
static std::string describe(const Effect &effect) {
  if (effect.binding == Effect::noBinding)
    return effect.actor;
  return format("kernel '%s', binding %u", effect.actor, effect.binding);
}

static std::string describe(const AddressRange &range) {
  return format("bytes [%llu, %llu) of %s 0x%llx", static_cast<unsigned long long>(range.begin),
                static_cast<unsigned long long>(range.end),
                range.space.isSparseBuffer ? "buffer" : "memory",
                static_cast<unsigned long long>(range.space.handle));
}

const std::vector<Image *> &ContentTracker::overlapping(const AddressRange &range) const {
  scratch_.clear();
  auto space = live_.find(range.space);
  if (space == live_.end())
    return scratch_;
  const LiveImages &images = space->second;
  auto at = images.lower_bound(range.begin);
  if (at != images.begin() && std::prev(at)->second->range.end > range.begin)
    --at;
  for (; at != images.end() && at->first < range.end; ++at)
    scratch_.push_back(at->second);
  return scratch_;
}

Status ContentTracker::apply(const Effect &effect) {
  switch (effect.kind) {
  case Effect::Kind::ImageRead:
    return applyImageRead(effect);
  case Effect::Kind::ImageWrite:
    applyImageWrite(effect);
    return {};
  case Effect::Kind::BufferRead:
    return applyBufferRead(effect);
  case Effect::Kind::BufferWrite:
    applyBufferWrite(effect);
    return {};
  }
  return {};
}

Status ContentTracker::applyImageRead(const Effect &effect) const {
  const Image &image = *effect.image;
  if (image.content != Content::Invalid)
    return {};
  std::string message =
      describe(effect) + " reads " + describe(image.range) + " as a " + image.shape.toString();
  const std::vector<Image *> &holders = overlapping(image.range);
  if (holders.empty())
    return Status::invalid(message +
                           ", which holds no tensor: no kernel has written it as an image, "
                           "or its bytes were overwritten since; pack the tensor into the "
                           "image by a kernel first");
  return Status::invalid(
      message + ", but those bytes are held by a " + holders.front()->shape.toString() + " at " +
      describe(holders.front()->range) + "; producer and consumer must agree on the shape");
}

void ContentTracker::applyImageWrite(const Effect &effect) {
  Image &image = *effect.image;
  if (image.content == Content::Invalid) {
    std::vector<Image *> dying = overlapping(image.range);
    for (Image *other : dying)
      change(*other, Content::Invalid);
  }
  auto mapped = mapped_.find(image.range.space);
  bool hostMayWrite = mapped != mapped_.end() && mapped->second.overlaps(image.range);
  change(image, hostMayWrite ? Content::Uncertain : Content::Valid);
}

Status ContentTracker::applyBufferRead(const Effect &effect) {
  for (const Image *image : overlapping(effect.range)) {
    bool isCertain = effect.isExact || image->range.contains(effect.range);
    if (isCertain && image->content == Content::Valid)
      return Status::invalid(
          describe(effect) + " reads " + describe(effect.range) +
          " as a buffer, but the tensor there is held by a " + image->shape.toString() + " at " +
          describe(image->range) +
          " and the bytes in the buffer are stale; unpack the image by a kernel first");
  }
  return {};
}

void ContentTracker::applyBufferWrite(const Effect &effect) {
  std::vector<Image *> touched = overlapping(effect.range);
  for (Image *image : touched) {
    bool mayMeanAnother =
        !effect.isExact && effect.range.contains(image->range) && !(effect.range == image->range);
    change(*image, mayMeanAnother ? Content::Uncertain : Content::Invalid);
  }
}

void ContentTracker::mapped(const AddressRange &range) {
  mapped_[range.space] = range;
  for (Image *image : overlapping(range))
    image->content = Content::Uncertain;
}

void ContentTracker::change(Image &image, Content content) {
  if (image.content == content)
    return;
  pending_.push_back({&image, image.content});
  setContent(image, content);
}

void ContentTracker::setContent(Image &image, Content content) {
  if (content == Content::Invalid) {
    auto space = live_.find(image.range.space);
    if (space == live_.end())
      return;
    auto at = space->second.find(image.range.begin);
    if (at != space->second.end() && at->second == &image)
      space->second.erase(at);
    if (space->second.empty())
      live_.erase(space);
  } else if (image.content == Content::Invalid) {
    live_[image.range.space][image.range.begin] = &image;
  }
  image.content = content;
}

std::vector<Image *> ContentTracker::commit() {
  std::vector<Image *> dead;
  for (const Change &change : pending_)
    if (change.image->content == Content::Invalid)
      dead.push_back(change.image);
  // An image can change several times in one submission.
  std::sort(dead.begin(), dead.end());
  dead.erase(std::unique(dead.begin(), dead.end()), dead.end());
  pending_.clear();
  return dead;
}

void ContentTracker::rollback() {
  for (auto change = pending_.rbegin(); change != pending_.rend(); ++change)
    setContent(*change->image, change->before);
  pending_.clear();
}

} // namespace smartmem::image_layer
