//===- CommandBuffer.h - records dispatches with images in them -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_COMMANDBUFFER_H
#define SMARTMEM_IMAGE_LAYER_COMMANDBUFFER_H

#include "Descriptors.h"
#include "ImageCache.h"
#include "Pipeline.h"
#include "TexelView.h"
#include <array>
#include <deque>

namespace smartmem::image_layer {

/// What a command buffer's recording keeps alive. The command buffer holds it until it is reset,
/// or, if it may be submitted only once, until that submission has finished.
struct RecordedResources {
  std::vector<Image *> images; ///< One use of each.
  std::vector<std::shared_ptr<TexelView>> views;
  std::vector<VkDescriptorPool> pools; ///< Of the sets for shadow layouts.
};

/// The device's parts that recording needs.
struct RecordingContext {
  const DeviceInfo &info;
  Statistics &statistics;
  const BufferTracker &buffers;
  const DescriptorTracker &descriptors;
  const PipelineTracker &pipelines;
  ImageCache &images;
  TexelViewCache &views;
  ShadowPoolCache &shadowPools;

  /// Ends the use of what a recording kept alive.
  void release(RecordedResources resources) const {
    images.release(resources.images);
    shadowPools.release(resources.pools);
  }
};

/// The state of a command buffer as far as the layer cares. Synchronised by the application, as the
/// command buffer itself is.
///
/// A command that fails here cannot say so; the first failure is kept and returned by
/// vkEndCommandBuffer. Later dispatches are not recorded.
class CommandBuffer {
public:
  CommandBuffer(VkCommandBuffer handle, const RecordingContext &context)
      : handle_(handle), context_(context) {}
  ~CommandBuffer() { reset(); }

  /// Forgets the recording: the command buffer is not pending.
  void reset();
  void begin(VkCommandBufferUsageFlags usage);
  const Status &failure() const { return failure_; }
  bool isOneTime() const { return isOneTime_; }

  void bindPipeline(const Pipeline *pipeline) { pipeline_ = pipeline; }
  void pushConstants(uint32_t offset, uint32_t size, const void *values);
  void bindSets(VkPipelineLayout layout, uint32_t first, uint32_t count,
                const VkDescriptorSet *sets, uint32_t dynamicOffsetCount);
  void pushDescriptors(VkPipelineLayout layout, uint32_t set, uint32_t count,
                       const VkWriteDescriptorSet *writes);

  /// Prepares a dispatch of the bound pipeline; false if it must not be recorded.
  bool prepareDispatch();
  /// Notes a transfer command: `actor` is its name.
  void noteTransfer(Effect::Kind kind, const char *actor, VkBuffer buffer, VkDeviceSize offset,
                    VkDeviceSize size);
  /// Takes over what a secondary command buffer does.
  void execute(const CommandBuffer &secondary);

  const std::vector<Effect> &effects() const { return effects_; }
  /// For a command buffer submitted for the only time: hands over what must outlive execution.
  RecordedResources takeResources();

private:
  struct BoundSet {
    VkPipelineLayout layout = VK_NULL_HANDLE;
    VkDescriptorSet set = VK_NULL_HANDLE; ///< Null for a push set.
    bool hasDynamicOffsets = false;
    DescriptorContents pushed; ///< Of a push set.
    bool isStale = false;      ///< The driver has something else bound since.
  };

  Status recordRedirected();
  Status resolveImage(const ImageBinding &binding, VkDescriptorImageInfo &info);
  Status resolveTexelBuffer(const ImageBinding &binding, VkBufferView &view);
  Status resolveTensor(const ImageBinding &binding, VkDescriptorBufferInfo &buffer,
                       AddressRange &range);
  Status bindShadowSets();
  void noteBuffers();
  void noteAccess(const ShaderBinding &binding, bool isExact, Image *image,
                  const AddressRange &range);
  Status restoreSets();
  /// What is bound to each of the first `count` sets; valid until the next command.
  void loadContents(size_t count);
  uint32_t quantity(const std::optional<Quantity> &quantity, uint32_t otherwise) const;
  void fail(Status status);

  VkCommandBuffer handle_;
  const RecordingContext &context_;
  bool isOneTime_ = false;
  Status failure_;
  const Pipeline *pipeline_ = nullptr;
  std::array<uint8_t, 256> pushConstants_ = {};
  std::vector<BoundSet> sets_;
  std::vector<Effect> effects_;
  RecordedResources resources_;

  // Of the dispatch at hand; members, so that their memory is kept.
  std::vector<const DescriptorContents *> contents_; ///< By set.
  std::deque<DescriptorContents> copies_;            ///< Of those in sets that others may change.
  std::vector<VkDescriptorImageInfo> imageInfos_;    ///< By position in the pipeline's images.
  std::vector<VkBufferView> texelViews_;             ///< Likewise.
  std::vector<VkWriteDescriptorSet> descriptorWrites_;
  std::vector<Effect> writes_; ///< They come after its reads.
};

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_COMMANDBUFFER_H
