//===- Pipeline.h - compute pipelines and their tensors ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_PIPELINE_H
#define SMARTMEM_IMAGE_LAYER_PIPELINE_H

#include "Reflection.h"
#include "ShadowLayout.h"
#include <atomic>

namespace smartmem::image_layer {

/// A binding that the application fills with a storage buffer and the shader sees as an image or a
/// texel buffer.
struct ImageBinding {
  ShaderBinding shader;
  const ImageFormat *format = nullptr;
  std::optional<Quantity> width, height, depth, offset;
};

/// What the layer has to know of a pipeline when it is dispatched.
struct Pipeline {
  std::string name;                     ///< Of the kernel, for messages.
  std::vector<ShaderBinding> buffers;   ///< Plain storage buffers.
  std::vector<ImageBinding> images;     ///< Bindings to redirect.
  bool exactBindings = false;           ///< Of the plain buffers; see ModuleMetadata.
  std::unique_ptr<ShadowLayout> shadow; ///< Null when `images` is empty.
};

/// Intercepts the creation of compute pipelines. Thread-safe.
class PipelineTracker {
public:
  PipelineTracker(const DeviceInfo &info, const LayoutTracker &layouts, Statistics &statistics)
      : info_(info), layouts_(layouts), statistics_(statistics) {}

  void created(VkShaderModule module, const VkShaderModuleCreateInfo &info);
  void destroyed(VkShaderModule module);

  VkResult create(VkPipelineCache cache, uint32_t count, const VkComputePipelineCreateInfo *infos,
                  const VkAllocationCallbacks *allocator, VkPipeline *pipelines);
  void destroyed(VkPipeline pipeline);
  /// Null for graphics pipelines. Valid as long as the pipeline is.
  const Pipeline *find(VkPipeline pipeline) const;

  /// Whether the device has, or had, a pipeline with image tensors: without one, there is nothing
  /// to do for any command.
  bool hasImagePipelines() const { return hasImagePipelines_.load(std::memory_order_relaxed); }

private:
  /// A create info changed for the layer, with the storage that it points to.
  struct Plan {
    VkComputePipelineCreateInfo info;
    std::unique_ptr<Pipeline> pipeline;
    VkSpecializationInfo specialization = {};
    std::vector<VkSpecializationMapEntry> specializationEntries;
    std::vector<uint8_t> specializationData;
  };

  Status plan(const VkComputePipelineCreateInfo &info, Plan &plan);
  Status planImages(const ShaderInterface &shader, const PipelineLayout &layout, Plan &plan) const;
  Status planImage(const ShaderBinding &binding, const ImageMetadata *metadata,
                   const PipelineLayout &layout, ImageBinding &result) const;
  Status checkAddressing(bool usesDeviceAddresses, bool hasImages);
  static void specializeCanary(uint32_t specId, Plan &plan);

  const DeviceInfo &info_;
  const LayoutTracker &layouts_;
  Statistics &statistics_;
  std::atomic<bool> hasImagePipelines_{false};
  std::atomic<bool> hasAddressPipelines_{false};
  mutable std::shared_mutex mutex_;
  std::unordered_map<VkShaderModule, std::vector<uint32_t>> modules_;
  std::unordered_map<VkPipeline, std::unique_ptr<Pipeline>> pipelines_;
};

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_PIPELINE_H
