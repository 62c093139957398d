//===- SmartMemOps.h - operations of the smartmem dialect -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_SMARTMEMOPS_H
#define SMARTMEM_SMARTMEMOPS_H

#include "SmartMem/SmartMemAttrs.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_OP_CLASSES
#include "SmartMem/SmartMemOps.h.inc"

#endif // SMARTMEM_SMARTMEMOPS_H
