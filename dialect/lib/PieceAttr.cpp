//===- PieceAttr.cpp - assembly and verification of view pieces -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SmartMem/QuasiAffine.h"
#include "SmartMem/SmartMemAttrs.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace mlir::smartmem;

LogicalResult PieceAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<int64_t> lower, ArrayRef<int64_t> upper, int64_t source,
                                AffineMap map, TypedAttr fill) {
  if (lower.size() != upper.size())
    return emitError() << "box has " << lower.size() << " lower and " << upper.size()
                       << " upper bounds";
  for (auto [lo, hi] : llvm::zip_equal(lower, upper))
    if (lo < 0 || lo >= hi)
      return emitError() << "box bounds must be 0 <= lower < upper, got " << lo << " to " << hi;
  if (static_cast<bool>(map) == static_cast<bool>(fill))
    return emitError() << "piece needs either a map or a fill constant";
  if (fill)
    return isa<FloatAttr, IntegerAttr>(fill)
               ? success()
               : emitError() << "piece must be filled with a float or integer, got " << fill;
  if (source < 0)
    return emitError() << "source index must not be negative, got " << source;
  if (map.getNumSymbols() != 0)
    return emitError() << "piece map must not have symbols";
  if (map.getNumDims() != lower.size())
    return emitError() << "piece map takes " << map.getNumDims() << " dimensions but the box has "
                       << lower.size();
  if (!dividesByConstants(map))
    return emitError() << "piece map must divide by positive constants only";
  return success();
}

/// `[` (lo `to` hi),* `]` (`from` source `at` map | `fill` constant)
PieceAttr PieceAttr::parseBody(AsmParser &parser) {
  SmallVector<int64_t> lower, upper;
  SMLoc loc = parser.getCurrentLocation();
  auto emitError = [&] { return parser.emitError(loc); };
  auto checked = [&](int64_t source, AffineMap map, TypedAttr fill) {
    return getChecked(function_ref<InFlightDiagnostic()>(emitError), parser.getContext(),
                      ArrayRef<int64_t>(lower), ArrayRef<int64_t>(upper), source, map, fill);
  };
  auto parseBounds = [&]() -> ParseResult {
    return failure(parser.parseInteger(lower.emplace_back()) || parser.parseKeyword("to") ||
                   parser.parseInteger(upper.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseBounds))
    return {};
  if (succeeded(parser.parseOptionalKeyword("fill"))) {
    TypedAttr fill;
    if (parser.parseAttribute(fill))
      return {};
    return checked(0, AffineMap(), fill);
  }
  int64_t source;
  AffineMap map;
  if (parser.parseKeyword("from", " or 'fill'") || parser.parseInteger(source) ||
      parser.parseKeyword("at") || parser.parseAffineMap(map))
    return {};
  return checked(source, map, TypedAttr());
}

void PieceAttr::printBody(AsmPrinter &printer) const {
  printer << '[';
  llvm::interleaveComma(llvm::zip_equal(getLower(), getUpper()), printer, [&](auto bounds) {
    printer << std::get<0>(bounds) << " to " << std::get<1>(bounds);
  });
  printer << ']';
  if (isFill()) {
    printer << " fill " << getFill();
    return;
  }
  printer << " from " << getSource() << " at ";
  getMap().print(printer.getStream());
}

Attribute PieceAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  PieceAttr piece = parseBody(parser);
  if (!piece || parser.parseGreater())
    return {};
  return piece;
}

void PieceAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printBody(printer);
  printer << '>';
}
