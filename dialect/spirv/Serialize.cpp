//===- Serialize.cpp - spirv.module to words ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Serialize.h"
#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/Target/SPIRV/Serialization.h"

std::vector<uint32_t> mlir::smartmem::serializeSpirv(MlirOperation module) {
  Operation *op = unwrap(module);
  auto spirvModule = dyn_cast<spirv::ModuleOp>(op);
  if (!spirvModule) {
    op->emitError("is no spirv.module");
    return {};
  }
  SmallVector<uint32_t, 0> words;
  spirv::SerializationOptions options;
  options.emitSymbolName = false;
  if (failed(spirv::serialize(spirvModule, words, options)))
    return {};
  return {words.begin(), words.end()};
}
