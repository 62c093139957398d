//===- Serialize.h - spirv.module to words ----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR has no C API for this. The header compiles with and without RTTI: the
// implementation follows MLIR, the caller follows nanobind.
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_SPIRV_SERIALIZE_H
#define SMARTMEM_SPIRV_SERIALIZE_H

#include "mlir-c/IR.h"
#include <cstdint>
#include <vector>

namespace mlir::smartmem {

/// The binary of a `spirv.module`; empty if `module` is another operation or has no
/// binary form, which is then said in diagnostics.
std::vector<uint32_t> serializeSpirv(MlirOperation module);

} // namespace mlir::smartmem

#endif // SMARTMEM_SPIRV_SERIALIZE_H
