//===- SmartMemAttrs.h - layouts, pieces, operator classes ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_SMARTMEMATTRS_H
#define SMARTMEM_SMARTMEMATTRS_H

#include "SmartMem/SmartMemDialect.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/TensorEncoding.h"
#include <array>

#include "SmartMem/SmartMemEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "SmartMem/SmartMemAttrs.h.inc"

#endif // SMARTMEM_SMARTMEMATTRS_H
