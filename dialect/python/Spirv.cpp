//===- Spirv.cpp - kernels as SPIR-V binaries -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Extension.h"
#include "Serialize.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"

namespace nb = nanobind;

void smartmem::python::bindSpirv(nb::module_ &m) {
  m.def(
      "serialize_spirv",
      [](MlirOperation module) {
        std::vector<uint32_t> words = mlir::smartmem::serializeSpirv(module);
        if (words.empty())
          throw nb::value_error("the operation has no SPIR-V binary");
        return nb::bytes(words.data(), words.size() * sizeof(uint32_t));
      },
      nb::arg("module"), "The binary of a `spirv.module`, in the byte order of this machine.");
}
