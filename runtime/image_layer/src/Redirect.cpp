//===- Redirect.cpp - puts images in place of buffers -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommandBuffer.h"

#include <cstring>

namespace smartmem::image_layer {

uint32_t CommandBuffer::quantity(const std::optional<Quantity> &quantity,
                                 uint32_t otherwise) const {
  if (!quantity)
    return otherwise;
  if (!quantity->isPushConstant)
    return quantity->value;
  uint32_t value;
  memcpy(&value, pushConstants_.data() + quantity->value * sizeof(value), sizeof(value));
  return value;
}

void CommandBuffer::noteAccess(const ShaderBinding &binding, bool isExact, Image *image,
                               const AddressRange &range) {
  Effect effect;
  effect.isExact = isExact;
  effect.binding = binding.binding;
  effect.image = image;
  effect.actor = pipeline_->name.c_str();
  effect.range = range;
  // A buffer that is written too is no proof of reading: a shader may well write before it reads.
  if (binding.reads && (image || !binding.writes)) {
    effect.kind = image ? Effect::Kind::ImageRead : Effect::Kind::BufferRead;
    effects_.push_back(effect);
  }
  if (binding.writes) {
    effect.kind = image ? Effect::Kind::ImageWrite : Effect::Kind::BufferWrite;
    writes_.push_back(effect);
  }
}

/// Notes what the bound pipeline does to its plain storage buffers.
void CommandBuffer::noteBuffers() {
  for (const ShaderBinding &binding : pipeline_->buffers) {
    if (binding.set >= contents_.size())
      continue;
    const BufferDescriptor *descriptor = contents_[binding.set]->find(binding.binding);
    AddressRange range;
    // Without a descriptor or a known buffer there is no image either.
    if (!descriptor || !context_.buffers
                            .resolve(descriptor->buffer.buffer, descriptor->buffer.offset,
                                     descriptor->buffer.range, range)
                            .ok())
      continue;
    if (pipeline_->shadow)
      context_.statistics.bytes_as_buffer += range.size();
    noteAccess(binding, pipeline_->exactBindings, nullptr, range);
  }
}

/// Finds the tensor behind a redirected binding: the whole binding, or what follows the offset.
Status CommandBuffer::resolveTensor(const ImageBinding &binding, VkDescriptorBufferInfo &buffer,
                                    AddressRange &range) {
  const BufferDescriptor *descriptor = contents_[binding.shader.set]->find(binding.shader.binding);
  if (!descriptor)
    return Status::invalid("no buffer is bound there");
  buffer = descriptor->buffer;
  SMARTMEM_RETURN_IF_ERROR(
      context_.buffers.resolveForImage(buffer.buffer, buffer.offset, buffer.range, range));
  VkDeviceSize offset = quantity(binding.offset, 0);
  if (offset > range.size())
    return Status::invalid(format("offset %llu lies outside the %llu bytes that are bound",
                                  static_cast<unsigned long long>(offset),
                                  static_cast<unsigned long long>(range.size())));
  range.begin += offset;
  buffer.offset += offset;
  buffer.range = range.size();
  return {};
}

Status CommandBuffer::resolveImage(const ImageBinding &binding, VkDescriptorImageInfo &info) {
  VkDescriptorBufferInfo buffer;
  AddressRange range;
  SMARTMEM_RETURN_IF_ERROR(resolveTensor(binding, buffer, range));
  ImageShape shape{binding.shader.viewType, binding.format, quantity(binding.width, 1),
                   quantity(binding.height, 1), quantity(binding.depth, 1)};
  SMARTMEM_RETURN_IF_ERROR(shape.check(context_.info.limits));
  // Texels and tensor must be the same bytes: anything else is a producer and a consumer, or a
  // compiler and a kernel, that disagree on the shape. A kernel that gives an offset says that
  // its tensor is only a part of what is bound.
  VkDeviceSize bytes = 0;
  if (!shape.byteSize(bytes) || bytes > buffer.range || (bytes < buffer.range && !binding.offset))
    return Status::invalid(format("a %s takes %llu bytes and the tensor has %llu",
                                  shape.toString().c_str(), static_cast<unsigned long long>(bytes),
                                  static_cast<unsigned long long>(buffer.range)));
  range.end = range.begin + bytes;
  Image *image = nullptr;
  SMARTMEM_RETURN_IF_ERROR(context_.images.acquire(range, shape, image));
  resources_.images.push_back(image);
  noteAccess(binding.shader, true, image, range);
  context_.statistics.bytes_as_image += bytes;
  info = {VK_NULL_HANDLE, image->view, VK_IMAGE_LAYOUT_GENERAL};
  return {};
}

Status CommandBuffer::resolveTexelBuffer(const ImageBinding &binding, VkBufferView &view) {
  VkDescriptorBufferInfo buffer;
  AddressRange range;
  SMARTMEM_RETURN_IF_ERROR(resolveTensor(binding, buffer, range));
  if (binding.width) {
    VkDeviceSize bytes = VkDeviceSize(quantity(binding.width, 0)) * binding.format->texelBytes;
    if (bytes == 0 || bytes > buffer.range || (bytes < buffer.range && !binding.offset))
      return Status::invalid(format("a texel buffer of %llu bytes does not fit a tensor of %llu",
                                    static_cast<unsigned long long>(bytes),
                                    static_cast<unsigned long long>(buffer.range)));
    buffer.range = bytes;
  }
  std::shared_ptr<TexelView> texelView;
  SMARTMEM_RETURN_IF_ERROR(context_.views.acquire(buffer, *binding.format, texelView));
  range.end = range.begin + buffer.range;
  noteAccess(binding.shader, true, nullptr, range);
  context_.statistics.bytes_as_texel_buffer += buffer.range;
  view = texelView->handle();
  resources_.views.push_back(std::move(texelView));
  return {};
}

Status CommandBuffer::recordRedirected() {
  loadContents(pipeline_->shadow->sets().size());
  size_t count = pipeline_->images.size();
  imageInfos_.resize(count);
  texelViews_.resize(count);
  for (size_t index = 0; index < count; ++index) {
    const ImageBinding &binding = pipeline_->images[index];
    Status status = binding.shader.isImage() ? resolveImage(binding, imageInfos_[index])
                                             : resolveTexelBuffer(binding, texelViews_[index]);
    if (!status.ok())
      return Status::error(status.result(),
                           format("binding %u: ", binding.shader.binding) + status.message());
  }
  noteBuffers();
  SMARTMEM_RETURN_IF_ERROR(bindShadowSets());
  for (BoundSet &bound : sets_)
    bound.isStale = true;
  ++context_.statistics.dispatches_redirected;
  if (isLogged(LogLevel::Trace))
    log(LogLevel::Trace, "dispatch of '" + pipeline_->name + "' redirected");
  return {};
}

Status CommandBuffer::bindShadowSets() {
  const DeviceTable &table = context_.info.table;
  const ShadowLayout &shadow = *pipeline_->shadow;
  for (uint32_t index = 0; index < shadow.sets().size(); ++index) {
    const ShadowLayout::Set &set = shadow.sets()[index];
    VkDescriptorSet handle = VK_NULL_HANDLE;
    if (!set.isPush)
      SMARTMEM_RETURN_IF_ERROR(context_.shadowPools.allocate(set.handle, resources_.pools, handle));
    descriptorWrites_.clear();
    for (const VkDescriptorSetLayoutBinding &declared : set.bindings) {
      VkWriteDescriptorSet write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
      write.dstSet = handle;
      write.dstBinding = declared.binding;
      write.descriptorCount = 1;
      write.descriptorType = declared.descriptorType;
      for (size_t image = 0; image < imageInfos_.size(); ++image) {
        const ShaderBinding &binding = pipeline_->images[image].shader;
        if (binding.set != index || binding.binding != declared.binding)
          continue;
        write.pImageInfo = binding.isImage() ? &imageInfos_[image] : nullptr;
        write.pTexelBufferView = binding.isImage() ? nullptr : &texelViews_[image];
      }
      if (!write.pImageInfo && !write.pTexelBufferView) {
        const BufferDescriptor *descriptor = contents_[index]->find(declared.binding);
        if (!descriptor)
          continue; // The shader does not use it, or the application forgot it: not our concern.
        write.pBufferInfo = &descriptor->buffer;
      }
      descriptorWrites_.push_back(write);
    }
    uint32_t count = static_cast<uint32_t>(descriptorWrites_.size());
    if (set.isPush) {
      table.CmdPushDescriptorSetKHR(handle_, VK_PIPELINE_BIND_POINT_COMPUTE, shadow.handle(), index,
                                    count, descriptorWrites_.data());
    } else {
      table.UpdateDescriptorSets(context_.info.device, count, descriptorWrites_.data(), 0, nullptr);
      table.CmdBindDescriptorSets(handle_, VK_PIPELINE_BIND_POINT_COMPUTE, shadow.handle(), index,
                                  1, &handle, 0, nullptr);
    }
  }
  return {};
}

} // namespace smartmem::image_layer
