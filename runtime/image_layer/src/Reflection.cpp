//===- Reflection.cpp - the bindings of a compute shader --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reflection.h"

#include "SpirvModule.h"
#include <unordered_set>

namespace smartmem::image_layer {

VkDescriptorType ShaderBinding::descriptorType() const {
  switch (kind) {
  case BindingKind::StorageImage:
    return VK_DESCRIPTOR_TYPE_STORAGE_IMAGE;
  case BindingKind::SampledImage:
    return VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE;
  case BindingKind::StorageTexelBuffer:
    return VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER;
  case BindingKind::UniformTexelBuffer:
    return VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER;
  case BindingKind::StorageBuffer:
  case BindingKind::Unsupported:
    break;
  }
  return VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
}

namespace {

/// Fills in kind, view type and format from the type that a UniformConstant variable points to.
void classifyUniformConstant(const SpirvModule &module, const SpirvType &pointee,
                             ShaderBinding &binding) {
  auto unsupported = [&](const char *problem) { binding.problem = problem; };
  switch (pointee.op) {
  case spirv::OpTypeImage:
    break;
  case spirv::OpTypeSampledImage:
    return unsupported("combined image samplers are not supported; use texelFetch on an image");
  case spirv::OpTypeArray:
  case spirv::OpTypeRuntimeArray:
    return unsupported("arrays of descriptors are not supported");
  default:
    return unsupported("only images can stand in for storage buffers");
  }
  const SpirvImage &image = pointee.image;
  bool isStorage = image.sampled == 2;
  binding.format = findFormatBySpirv(image.format);
  binding.sampledTypeIsFloat = module.isFloatType(image.sampledType);
  if (image.multisampled)
    return unsupported("multisampled images are not supported");
  if (image.format != 0 && !binding.format)
    return unsupported("the texel format must be rgba32f, rgba16f or rgba32ui");
  switch (image.dim) {
  case spirv::DimBuffer:
    binding.kind = isStorage ? BindingKind::StorageTexelBuffer : BindingKind::UniformTexelBuffer;
    return;
  case spirv::Dim2D:
    binding.viewType = image.arrayed ? VK_IMAGE_VIEW_TYPE_2D_ARRAY : VK_IMAGE_VIEW_TYPE_2D;
    break;
  case spirv::Dim3D:
    binding.viewType = VK_IMAGE_VIEW_TYPE_3D;
    break;
  default:
    return unsupported("only 2-D, 2-D array, 3-D and buffer images are supported");
  }
  binding.kind = isStorage ? BindingKind::StorageImage : BindingKind::SampledImage;
}

/// The functions that an entry point can reach, itself included.
std::unordered_set<uint32_t> reachableFunctions(const SpirvModule &module, uint32_t entry) {
  std::unordered_set<uint32_t> reached{entry};
  std::vector<uint32_t> pending{entry};
  while (!pending.empty()) {
    uint32_t function = pending.back();
    pending.pop_back();
    for (const auto &[caller, callee] : module.calls())
      if (caller == function && reached.insert(callee).second)
        pending.push_back(callee);
  }
  return reached;
}

} // namespace

Status reflect(const uint32_t *words, size_t wordCount, std::string_view entryPoint,
               ShaderInterface &result) {
  SpirvModule module(words, wordCount);
  for (std::string_view line : module.processedStrings())
    SMARTMEM_RETURN_IF_ERROR(parseMetadataLine(line, result.metadata));
  result.usesDeviceAddresses = module.usesPhysicalStorageBuffers();

  std::unordered_set<uint32_t> functions =
      reachableFunctions(module, module.entryFunction(entryPoint));
  for (const auto &[id, variable] : module.variables()) {
    std::optional<SpirvBindingPoint> point = module.bindingPoint(id);
    const SpirvType *pointee = module.pointee(variable.type);
    if (!point || !pointee)
      continue;
    ShaderBinding binding;
    binding.set = point->set;
    binding.binding = point->binding;
    bool isUsed = false;
    for (const SpirvAccess &access : variable.accesses) {
      if (!functions.count(access.function))
        continue;
      isUsed = true;
      binding.reads |= access.reads;
      binding.writes |= access.writes;
    }
    if (!isUsed)
      continue;
    if (variable.storageClass == spirv::StorageClassUniformConstant)
      classifyUniformConstant(module, *pointee, binding);
    else if (module.isStorageBuffer(variable))
      binding.kind = BindingKind::StorageBuffer;
    else
      continue;
    binding.reads &= !module.isNonReadable(id, *pointee);
    binding.writes &= !module.isNonWritable(id, *pointee);
    result.bindings.push_back(binding);
  }
  return {};
}

} // namespace smartmem::image_layer
