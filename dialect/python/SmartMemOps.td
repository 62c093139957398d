//===- SmartMemOps.td - entry point of the Python bindings ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_PYTHON_SMARTMEMOPS_TD
#define SMARTMEM_PYTHON_SMARTMEMOPS_TD

include "SmartMem/SmartMemOps.td"

#endif // SMARTMEM_PYTHON_SMARTMEMOPS_TD
