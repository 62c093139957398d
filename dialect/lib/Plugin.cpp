//===- Plugin.cpp - the dialect as a plugin of mlir-opt -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mlir-opt --load-dialect-plugin=libSmartMem.so reads and verifies the dialect where
// MLIR has no Python bindings.
//
//===----------------------------------------------------------------------===//

#include "SmartMem/SmartMemDialect.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"

using namespace mlir;

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "SmartMem", "0.1",
          [](DialectRegistry *registry) { registry->insert<smartmem::SmartMemDialect>(); }};
}
