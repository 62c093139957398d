//===- Pipeline.cpp - compute pipelines and their tensors -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pipeline.h"

#include "Version.h"
#include <cstring>
#include <mutex>

namespace smartmem::image_layer {

void PipelineTracker::created(VkShaderModule module, const VkShaderModuleCreateInfo &info) {
  std::vector<uint32_t> words(info.pCode, info.pCode + info.codeSize / sizeof(uint32_t));
  std::unique_lock lock(mutex_);
  modules_[module] = std::move(words);
}

void PipelineTracker::destroyed(VkShaderModule module) {
  std::unique_lock lock(mutex_);
  modules_.erase(module);
}

void PipelineTracker::destroyed(VkPipeline pipeline) {
  std::unique_lock lock(mutex_);
  pipelines_.erase(pipeline);
}

const Pipeline *PipelineTracker::find(VkPipeline pipeline) const {
  std::shared_lock lock(mutex_);
  auto found = pipelines_.find(pipeline);
  return found == pipelines_.end() ? nullptr : found->second.get();
}

VkResult PipelineTracker::create(VkPipelineCache cache, uint32_t count,
                                 const VkComputePipelineCreateInfo *infos,
                                 const VkAllocationCallbacks *allocator, VkPipeline *pipelines) {
  std::vector<Plan> plans(count);
  std::vector<VkComputePipelineCreateInfo> changed;
  for (uint32_t index = 0; index < count; ++index) {
    if (Status status = plan(infos[index], plans[index]); !status.ok()) {
      for (uint32_t other = 0; other < count; ++other)
        pipelines[other] = VK_NULL_HANDLE;
      ++statistics_.errors;
      return report(status);
    }
    changed.push_back(plans[index].info);
  }
  VkResult result = info_.table.CreateComputePipelines(info_.device, cache, count, changed.data(),
                                                       allocator, pipelines);
  std::unique_lock lock(mutex_);
  for (uint32_t index = 0; index < count; ++index) {
    if (pipelines[index] == VK_NULL_HANDLE)
      continue;
    if (plans[index].pipeline->shadow)
      ++statistics_.image_pipelines;
    pipelines_[pipelines[index]] = std::move(plans[index].pipeline);
  }
  return result;
}

Status PipelineTracker::plan(const VkComputePipelineCreateInfo &info, Plan &plan) {
  plan.info = info;
  plan.pipeline = std::make_unique<Pipeline>();
  Pipeline &pipeline = *plan.pipeline;
  pipeline.name = info.stage.pName;

  ShaderInterface shader;
  {
    std::shared_lock lock(mutex_);
    auto module = modules_.find(info.stage.module);
    if (module != modules_.end()) {
      SMARTMEM_RETURN_IF_ERROR(
          reflect(module->second.data(), module->second.size(), info.stage.pName, shader));
    } else {
      // VK_KHR_maintenance5 passes the code itself.
      for (auto next = static_cast<const VkBaseInStructure *>(info.stage.pNext); next;
           next = next->pNext) {
        if (next->sType != VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO)
          continue;
        auto code = reinterpret_cast<const VkShaderModuleCreateInfo *>(next);
        SMARTMEM_RETURN_IF_ERROR(
            reflect(code->pCode, code->codeSize / sizeof(uint32_t), info.stage.pName, shader));
      }
    }
  }
  if (!shader.metadata.kernelName.empty())
    pipeline.name = shader.metadata.kernelName;
  pipeline.exactBindings = shader.metadata.exactBindings;
  for (const ShaderBinding &binding : shader.bindings)
    if (binding.kind == BindingKind::StorageBuffer)
      pipeline.buffers.push_back(binding);

  if (std::shared_ptr<const PipelineLayout> layout = layouts_.find(info.layout))
    if (Status status = planImages(shader, *layout, plan); !status.ok())
      return Status::error(status.result(), "kernel '" + pipeline.name + "', " + status.message());
  SMARTMEM_RETURN_IF_ERROR(checkAddressing(shader.usesDeviceAddresses, !pipeline.images.empty()));
  if (shader.metadata.canarySpecId)
    specializeCanary(*shader.metadata.canarySpecId, plan);
  return {};
}

static const ImageMetadata *findMetadata(const ModuleMetadata &metadata,
                                         const ShaderBinding &binding) {
  for (const ImageMetadata &image : metadata.images)
    if (image.set == binding.set && image.binding == binding.binding)
      return &image;
  return nullptr;
}

Status PipelineTracker::planImages(const ShaderInterface &shader, const PipelineLayout &layout,
                                   Plan &plan) const {
  std::vector<Substitution> substitutions;
  for (const ShaderBinding &binding : shader.bindings) {
    if (binding.kind == BindingKind::StorageBuffer)
      continue;
    const VkDescriptorSetLayoutBinding *declared = layout.find(binding.set, binding.binding);
    const ImageMetadata *metadata = findMetadata(shader.metadata, binding);
    // Without metadata, a layout that says anything but storage buffer is an application's own use
    // of images.
    if (declared && declared->descriptorType != VK_DESCRIPTOR_TYPE_STORAGE_BUFFER && !metadata)
      continue;
    ImageBinding image;
    Status status = planImage(binding, metadata, layout, image);
    if (!status.ok())
      return Status::error(status.result(),
                           format("set %u binding %u: ", binding.set, binding.binding) +
                               status.message());
    substitutions.push_back({binding.set, binding.binding, binding.descriptorType()});
    plan.pipeline->images.push_back(image);
  }
  if (substitutions.empty())
    return {};
  if (shader.usesDeviceAddresses)
    return Status::invalid("buffer device addresses bypass the image layer; compile and run with "
                           "the descriptor ABI (--vulkan_dispatch_abi=descriptor)");
  SMARTMEM_RETURN_IF_ERROR(
      ShadowLayout::create(info_, layout, substitutions, plan.pipeline->shadow));
  plan.info.layout = plan.pipeline->shadow->handle();
  return {};
}

Status PipelineTracker::planImage(const ShaderBinding &binding, const ImageMetadata *metadata,
                                  const PipelineLayout &layout, ImageBinding &result) const {
  if (binding.problem)
    return Status::invalid(binding.problem);
  const VkDescriptorSetLayoutBinding *declared = layout.find(binding.set, binding.binding);
  if (!declared)
    return Status::invalid("the shader has an image there and the pipeline layout nothing; compile "
                           "and run with the descriptor ABI (--vulkan_dispatch_abi=descriptor)");
  if (declared->descriptorType != VK_DESCRIPTOR_TYPE_STORAGE_BUFFER)
    return Status::invalid("only a plain storage buffer can be backed by an image");
  if (!metadata)
    return Status::invalid("the shader has an image there and the application binds a buffer, but "
                           "no smartmem.image.v1 line says how to lay one out");

  result.shader = binding;
  result.format = binding.format ? binding.format : metadata->format;
  result.width = metadata->width;
  result.height = metadata->height;
  result.depth = metadata->depth;
  result.offset = metadata->offset;
  if (!result.format)
    return Status::invalid("neither the shader's type nor the metadata names the texel format");
  if (metadata->format && metadata->format != result.format)
    return Status::invalid(format("the metadata says %s and the shader's type %s",
                                  metadata->format->name, result.format->name));
  if (result.format->isFloat != binding.sampledTypeIsFloat)
    return Status::invalid(
        format("the shader's sampled type does not fit %s", result.format->name));

  bool isFlat = binding.isTexelBuffer();
  bool hasDepth = binding.isImage() && binding.viewType != VK_IMAGE_VIEW_TYPE_2D;
  if (isFlat ? (result.height || result.depth)
             : (!result.width || !result.height || hasDepth != bool(result.depth)))
    return Status::invalid("wrong extents: a texel buffer takes w at most, a 2-D image w and h, an "
                           "array or 3-D image w, h and d");
  if (isFlat && result.offset && !result.width)
    return Status::invalid("a texel buffer with an offset needs w");
  for (const std::optional<Quantity> &quantity :
       {result.width, result.height, result.depth, result.offset})
    if (quantity && quantity->isPushConstant &&
        (quantity->value + 1) * sizeof(uint32_t) > layout.pushConstantBytes())
      return Status::invalid(format("the metadata refers to push-constant dword %u of a pipeline "
                                    "layout with %u bytes of push constants",
                                    quantity->value, layout.pushConstantBytes()));

  auto literal = [](const std::optional<Quantity> &quantity) {
    return quantity && !quantity->isPushConstant ? quantity->value : 1;
  };
  if (isFlat)
    return {}; // Known when the buffer is.
  ImageShape shape{binding.viewType, result.format, literal(result.width), literal(result.height),
                   literal(result.depth)};
  return shape.check(info_.limits);
}

Status PipelineTracker::checkAddressing(bool usesDeviceAddresses, bool hasImages) {
  hasImagePipelines_ = hasImagePipelines_ || hasImages;
  hasAddressPipelines_ = hasAddressPipelines_ || usesDeviceAddresses;
  if ((hasImages || usesDeviceAddresses) && hasImagePipelines_ && hasAddressPipelines_)
    return Status::invalid(
        "one device has pipelines with image tensors and pipelines that write through buffer "
        "device "
        "addresses, which the layer cannot follow; compile and run all modules with the descriptor "
        "ABI (--vulkan_dispatch_abi=descriptor)");
  return {};
}

void PipelineTracker::specializeCanary(uint32_t specId, Plan &plan) {
  if (const VkSpecializationInfo *given = plan.info.stage.pSpecializationInfo) {
    plan.specializationEntries.assign(given->pMapEntries,
                                      given->pMapEntries + given->mapEntryCount);
    auto data = static_cast<const uint8_t *>(given->pData);
    plan.specializationData.assign(data, data + given->dataSize);
  }
  uint32_t offset = static_cast<uint32_t>(plan.specializationData.size());
  plan.specializationEntries.push_back({specId, offset, sizeof(interfaceVersion)});
  plan.specializationData.resize(offset + sizeof(interfaceVersion));
  memcpy(plan.specializationData.data() + offset, &interfaceVersion, sizeof(interfaceVersion));
  plan.specialization = {static_cast<uint32_t>(plan.specializationEntries.size()),
                         plan.specializationEntries.data(), plan.specializationData.size(),
                         plan.specializationData.data()};
  plan.info.stage.pSpecializationInfo = &plan.specialization;
}

} // namespace smartmem::image_layer
