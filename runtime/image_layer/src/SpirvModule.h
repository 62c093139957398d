//===- SpirvModule.h - a view of a SPIR-V module ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_IMAGE_LAYER_SPIRVMODULE_H
#define SMARTMEM_IMAGE_LAYER_SPIRVMODULE_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace smartmem::image_layer {

/// The enumerants of the SPIR-V specification that the layer looks at.
namespace spirv {
enum Op : uint32_t {
  OpMemoryModel = 14,
  OpEntryPoint = 15,
  OpTypeFloat = 22,
  OpTypeImage = 25,
  OpTypeSampledImage = 27,
  OpTypeArray = 28,
  OpTypeRuntimeArray = 29,
  OpTypeStruct = 30,
  OpTypePointer = 32,
  OpFunction = 54,
  OpFunctionEnd = 56,
  OpFunctionCall = 57,
  OpVariable = 59,
  OpImageTexelPointer = 60,
  OpLoad = 61,
  OpStore = 62,
  OpCopyMemory = 63,
  OpCopyMemorySized = 64,
  OpAccessChain = 65,
  OpInBoundsAccessChain = 66,
  OpPtrAccessChain = 67,
  OpArrayLength = 68,
  OpInBoundsPtrAccessChain = 70,
  OpDecorate = 71,
  OpMemberDecorate = 72,
  OpCopyObject = 83,
  OpSampledImage = 86,
  OpImageSampleFirst = 87, ///< OpImageSampleImplicitLod; sampling ends with OpImageDrefGather.
  OpImageFetch = 95,
  OpImageDrefGather = 97,
  OpImageRead = 98,
  OpImageWrite = 99,
  OpImage = 100,
  OpSelect = 169,
  OpAtomicLoad = 227,
  OpAtomicStore = 228,
  OpAtomicXor = 242,
  OpPhi = 245,
  OpModuleProcessed = 330,
};
enum : uint32_t {
  ExecutionModelGLCompute = 5,
  AddressingModelPhysicalStorageBuffer64 = 5348,
  StorageClassUniformConstant = 0,
  StorageClassUniform = 2,
  StorageClassStorageBuffer = 12,
  DecorationBufferBlock = 3,
  DecorationNonWritable = 24,
  DecorationNonReadable = 25,
  DecorationBinding = 33,
  DecorationDescriptorSet = 34,
  Dim2D = 1,
  Dim3D = 2,
  DimBuffer = 5,
};
} // namespace spirv

/// The operands of OpTypeImage.
struct SpirvImage {
  uint32_t sampledType = 0, dim = 0, sampled = 0, format = 0;
  bool arrayed = false, multisampled = false;
};

struct SpirvType {
  uint32_t op = 0;
  uint32_t id = 0;
  uint32_t target = 0; ///< Pointee of a pointer.
  uint32_t memberCount = 0;
  SpirvImage image;
};

/// That a function touches a variable. Queries of sizes touch without reading.
struct SpirvAccess {
  uint32_t function;
  bool reads, writes;
};

struct SpirvVariable {
  uint32_t type = 0;
  uint32_t storageClass = 0;
  std::vector<SpirvAccess> accesses;
};

struct SpirvBindingPoint {
  uint32_t set, binding;
};

/// Decodes a module once, tolerantly: reading stops at the first instruction that overruns it.
class SpirvModule {
public:
  SpirvModule(const uint32_t *words, size_t wordCount);

  /// The function of a GLCompute entry point, 0 if there is none of that name.
  uint32_t entryFunction(std::string_view name) const;
  bool usesPhysicalStorageBuffers() const { return physicalStorageBuffers_; }
  const std::vector<std::string_view> &processedStrings() const { return processed_; }
  const std::map<uint32_t, SpirvVariable> &variables() const { return variables_; }
  const std::vector<std::pair<uint32_t, uint32_t>> &calls() const { return calls_; }

  std::optional<SpirvBindingPoint> bindingPoint(uint32_t variable) const;
  /// What a pointer type points to; null for unknown types.
  const SpirvType *pointee(uint32_t pointerType) const;
  bool isFloatType(uint32_t type) const;
  bool isStorageBuffer(const SpirvVariable &variable) const;
  /// Whether the variable, or every member of its block, carries the decoration.
  bool isNonReadable(uint32_t variable, const SpirvType &pointee) const;
  bool isNonWritable(uint32_t variable, const SpirvType &pointee) const;

private:
  void decode(uint32_t op, const uint32_t *operands, size_t count);
  void decodeBody(uint32_t op, const uint32_t *operands, size_t count);
  void access(uint32_t id, bool reads, bool writes);
  bool hasDecoration(uint32_t id, uint32_t decoration) const;
  bool isDecorated(uint32_t variable, const SpirvType &pointee, uint32_t decoration) const;

  bool physicalStorageBuffers_ = false;
  uint32_t currentFunction_ = 0;
  std::vector<std::pair<std::string_view, uint32_t>> entryPoints_;
  std::vector<std::string_view> processed_;
  std::map<uint32_t, SpirvVariable> variables_;
  std::unordered_map<uint32_t, SpirvType> types_;
  std::vector<std::pair<uint32_t, uint32_t>> calls_; ///< (caller, callee)
  /// Decorations of an id as (decoration, literal).
  std::unordered_map<uint32_t, std::vector<std::pair<uint32_t, uint32_t>>> decorations_;
  /// (struct, decoration) -> how many members carry it.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> memberDecorations_;
  /// Pointers and loaded images, by the variable that they come from.
  std::unordered_map<uint32_t, uint32_t> origin_;
};

} // namespace smartmem::image_layer

#endif // SMARTMEM_IMAGE_LAYER_SPIRVMODULE_H
