//===- Dialect.cpp - registration of attributes and operations ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SmartMem/SmartMemAttrs.h"
#include "SmartMem/SmartMemOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::smartmem;

#include "SmartMem/SmartMemDialect.cpp.inc"
#include "SmartMem/SmartMemEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "SmartMem/SmartMemAttrs.cpp.inc"

namespace {

/// Layouts are long and recur: they are named at the top of the file, as #layout.
struct AssemblyInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attr, raw_ostream &os) const override {
    if (!isa<LayoutAttr>(attr))
      return AliasResult::NoAlias;
    os << "layout";
    return AliasResult::OverridableAlias;
  }
};

} // namespace

void SmartMemDialect::initialize() {
  addInterfaces<AssemblyInterface>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "SmartMem/SmartMemAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "SmartMem/SmartMemOps.cpp.inc"
      >();
}

Injectivity SmartMemDialect::getInjectivity(AffineMap map, ArrayRef<int64_t> shape) {
  MapOnShape key(map.getAsOpaquePointer(), shape.vec());
  {
    std::lock_guard<std::mutex> lock(injectivitiesMutex);
    if (auto it = injectivities.find(key); it != injectivities.end())
      return it->second;
  }
  Injectivity answer = decideInjectivity(map, shape);
  std::lock_guard<std::mutex> lock(injectivitiesMutex);
  return injectivities.try_emplace(std::move(key), std::move(answer)).first->second;
}

LogicalResult SmartMemDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == kOpClassAttrName && !isa<OpClassAttr>(attribute.getValue()))
    return op->emitOpError() << "expects '" << kOpClassAttrName
                             << "' to be an #smartmem.op_class, got " << attribute.getValue();
  return success();
}
