//===- Extension.cpp - smartmem_mlir._smartmem ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Extension.h"
#include "SmartMem-c/SmartMem.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"

namespace nb = nanobind;
using namespace mlir::python::nanobind_adaptors;

NB_MODULE(_smartmem, m) {
  m.doc() = "The smartmem dialect: registration, attributes, passes.";
  m.def(
      "register_dialects",
      [](MlirDialectRegistry registry) {
        mlirDialectHandleInsertDialect(mlirGetDialectHandle__smartmem__(), registry);
      },
      nb::arg("registry"), "Adds the dialect to a registry.");
  m.def(
      "register_dialect",
      [](MlirContext context, bool load) {
        MlirDialectHandle handle = mlirGetDialectHandle__smartmem__();
        mlirDialectHandleRegisterDialect(handle, context);
        if (load)
          mlirDialectHandleLoadDialect(handle, context);
      },
      nb::arg("context"), nb::arg("load") = true, "Adds the dialect to one context.");
  smartmem::python::bindAttributes(m);
  smartmem::python::bindPasses(m);
  smartmem::python::bindSpirv(m);
}
