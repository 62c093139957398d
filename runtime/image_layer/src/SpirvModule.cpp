//===- SpirvModule.cpp - a view of a SPIR-V module --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SpirvModule.h"

#include <cstring>

namespace smartmem::image_layer {

using namespace spirv;

static constexpr uint32_t spirvMagic = 0x07230203;
static constexpr size_t spirvHeaderWords = 5;

/// The literal string in `words`, empty when it is not terminated.
static std::string_view literalString(const uint32_t *words, size_t count) {
  const char *text = reinterpret_cast<const char *>(words);
  const void *end = memchr(text, 0, count * sizeof(uint32_t));
  return end ? std::string_view(text, static_cast<const char *>(end) - text) : std::string_view();
}

SpirvModule::SpirvModule(const uint32_t *words, size_t wordCount) {
  if (wordCount < spirvHeaderWords || words[0] != spirvMagic)
    return;
  for (size_t at = spirvHeaderWords; at < wordCount;) {
    uint32_t op = words[at] & 0xffff;
    size_t length = words[at] >> 16;
    if (length == 0 || length > wordCount - at)
      return;
    decode(op, words + at + 1, length - 1);
    at += length;
  }
}

void SpirvModule::decode(uint32_t op, const uint32_t *operands, size_t count) {
  switch (op) {
  case OpMemoryModel:
    if (count >= 1)
      physicalStorageBuffers_ = operands[0] == AddressingModelPhysicalStorageBuffer64;
    return;
  case OpEntryPoint:
    if (count >= 3 && operands[0] == ExecutionModelGLCompute)
      entryPoints_.emplace_back(literalString(operands + 2, count - 2), operands[1]);
    return;
  case OpModuleProcessed:
    processed_.push_back(literalString(operands, count));
    return;
  case OpDecorate:
    if (count >= 2)
      decorations_[operands[0]].emplace_back(operands[1], count >= 3 ? operands[2] : 0);
    return;
  case OpMemberDecorate:
    if (count >= 3)
      ++memberDecorations_[{operands[0], operands[2]}];
    return;
  case OpTypeImage:
    if (count >= 8)
      types_[operands[0]] = {
          op,
          operands[0],
          0,
          0,
          {operands[1], operands[2], operands[6], operands[7], operands[4] != 0, operands[5] != 0}};
    return;
  case OpTypePointer:
    if (count >= 3)
      types_[operands[0]] = {op, operands[0], operands[2], 0, {}};
    return;
  case OpTypeStruct:
    if (count >= 1)
      types_[operands[0]] = {op, operands[0], 0, static_cast<uint32_t>(count - 1), {}};
    return;
  case OpTypeFloat:
  case OpTypeSampledImage:
  case OpTypeArray:
  case OpTypeRuntimeArray:
    if (count >= 2)
      types_[operands[0]] = {op, operands[0], operands[1], 0, {}};
    return;
  case OpVariable:
    // Module-scope variables only: the others have no descriptors.
    if (count >= 3 && currentFunction_ == 0) {
      variables_[operands[1]] = {operands[0], operands[2], {}};
      origin_[operands[1]] = operands[1];
    }
    return;
  case OpFunction:
    if (count >= 2)
      currentFunction_ = operands[1];
    return;
  case OpFunctionEnd:
    currentFunction_ = 0;
    return;
  default:
    if (currentFunction_ != 0)
      decodeBody(op, operands, count);
  }
}

void SpirvModule::access(uint32_t id, bool reads, bool writes) {
  auto found = origin_.find(id);
  if (found != origin_.end())
    variables_[found->second].accesses.push_back({currentFunction_, reads, writes});
}

void SpirvModule::decodeBody(uint32_t op, const uint32_t *operands, size_t count) {
  auto operand = [&](size_t index) { return index < count ? operands[index] : 0; };
  // Operand 1 is the result id of every instruction that has one, operand 2 its first input.
  auto derive = [&](bool reads) {
    auto found = origin_.find(operand(2));
    if (found == origin_.end())
      return;
    origin_[operand(1)] = found->second;
    access(operand(2), reads, false);
  };
  switch (op) {
  case OpAccessChain:
  case OpInBoundsAccessChain:
  case OpPtrAccessChain:
  case OpInBoundsPtrAccessChain:
  case OpCopyObject:
  case OpSampledImage:
  case OpImage:
    return derive(/*reads=*/false);
  case OpLoad: {
    // Loading an image gives a handle; loading from a buffer reads it.
    auto found = origin_.find(operand(2));
    bool isHandle = found != origin_.end() &&
                    variables_[found->second].storageClass == StorageClassUniformConstant;
    return derive(/*reads=*/!isHandle);
  }
  case OpArrayLength:
    return access(operand(2), false, false);
  case OpStore:
    return access(operand(0), false, true);
  case OpCopyMemory:
  case OpCopyMemorySized:
    access(operand(0), false, true);
    return access(operand(1), true, false);
  case OpImageTexelPointer: // Only atomics use it.
    return access(operand(2), true, true);
  case OpImageRead:
    return access(operand(2), true, false);
  case OpImageWrite:
    return access(operand(0), false, true);
  case OpAtomicLoad:
    return access(operand(2), true, false);
  case OpAtomicStore:
    return access(operand(0), false, true);
  case OpFunctionCall:
    calls_.emplace_back(currentFunction_, operand(2));
    [[fallthrough]];
  case OpSelect:
  case OpPhi:
    // What becomes of the pointer is not followed.
    for (size_t index = 2; index < count; ++index)
      access(operands[index], true, true);
    return;
  default:
    if (op >= OpImageSampleFirst && op <= OpImageDrefGather)
      access(operand(2), true, false);
    else if (op > OpAtomicStore && op <= OpAtomicXor)
      access(operand(2), true, true);
  }
}

uint32_t SpirvModule::entryFunction(std::string_view name) const {
  for (const auto &[entryName, function] : entryPoints_)
    if (entryName == name)
      return function;
  return 0;
}

bool SpirvModule::hasDecoration(uint32_t id, uint32_t decoration) const {
  auto found = decorations_.find(id);
  if (found == decorations_.end())
    return false;
  for (const auto &[kind, literal] : found->second)
    if (kind == decoration)
      return true;
  return false;
}

std::optional<SpirvBindingPoint> SpirvModule::bindingPoint(uint32_t variable) const {
  auto found = decorations_.find(variable);
  if (found == decorations_.end())
    return std::nullopt;
  SpirvBindingPoint point{0, 0};
  bool hasBinding = false;
  for (const auto &[kind, literal] : found->second) {
    if (kind == DecorationDescriptorSet)
      point.set = literal;
    if (kind == DecorationBinding) {
      point.binding = literal;
      hasBinding = true;
    }
  }
  return hasBinding ? std::optional(point) : std::nullopt;
}

const SpirvType *SpirvModule::pointee(uint32_t pointerType) const {
  auto pointer = types_.find(pointerType);
  if (pointer == types_.end() || pointer->second.op != OpTypePointer)
    return nullptr;
  auto target = types_.find(pointer->second.target);
  return target == types_.end() ? nullptr : &target->second;
}

bool SpirvModule::isFloatType(uint32_t type) const {
  auto found = types_.find(type);
  return found != types_.end() && found->second.op == OpTypeFloat;
}

bool SpirvModule::isStorageBuffer(const SpirvVariable &variable) const {
  if (variable.storageClass == StorageClassStorageBuffer)
    return true;
  const SpirvType *block = pointee(variable.type);
  return variable.storageClass == StorageClassUniform && block &&
         hasDecoration(block->id, DecorationBufferBlock);
}

bool SpirvModule::isDecorated(uint32_t variable, const SpirvType &pointee,
                              uint32_t decoration) const {
  if (hasDecoration(variable, decoration))
    return true;
  auto members = memberDecorations_.find({pointee.id, decoration});
  return pointee.op == OpTypeStruct && pointee.memberCount > 0 &&
         members != memberDecorations_.end() && members->second >= pointee.memberCount;
}

bool SpirvModule::isNonReadable(uint32_t variable, const SpirvType &pointee) const {
  return isDecorated(variable, pointee, DecorationNonReadable);
}

bool SpirvModule::isNonWritable(uint32_t variable, const SpirvType &pointee) const {
  return isDecorated(variable, pointee, DecorationNonWritable);
}

} // namespace smartmem::image_layer
