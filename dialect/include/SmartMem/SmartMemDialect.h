//===- SmartMemDialect.h - the smartmem dialect -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_SMARTMEMDIALECT_H
#define SMARTMEM_SMARTMEMDIALECT_H

#include "SmartMem/QuasiAffine.h"
#include "mlir/IR/Dialect.h"
#include <map>
#include <mutex>
#include <vector>

#include "SmartMem/SmartMemDialect.h.inc"

#endif // SMARTMEM_SMARTMEMDIALECT_H
