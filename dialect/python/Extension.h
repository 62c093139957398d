//===- Extension.h - parts of the Python extension --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_PYTHON_EXTENSION_H
#define SMARTMEM_PYTHON_EXTENSION_H

#include "mlir/Bindings/Python/Nanobind.h"

namespace smartmem::python {

/// LayoutAttr, OpClassAttr, PieceAttr.
void bindAttributes(nanobind::module_ &m);

/// register_pass, is_pass_registered, opt_main.
void bindPasses(nanobind::module_ &m);

/// serialize_spirv.
void bindSpirv(nanobind::module_ &m);

} // namespace smartmem::python

#endif // SMARTMEM_PYTHON_EXTENSION_H
