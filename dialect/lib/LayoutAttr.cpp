//===- LayoutAttr.cpp - assembly, verification, physical shape ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SmartMem/QuasiAffine.h"
#include "SmartMem/SmartMemAttrs.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/APSInt.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::smartmem;

/// Lanes of a texel (RGBA).
static constexpr int64_t kTexelLanes = 4;

//===----------------------------------------------------------------------===//
// Assembly
//===----------------------------------------------------------------------===//

/// `pad = ` a number, `inf` or `-inf`.
static FailureOr<FloatAttr> parsePad(AsmParser &parser) {
  double value = 0;
  SMLoc loc = parser.getCurrentLocation();
  bool negative = succeeded(parser.parseOptionalMinus());
  StringRef keyword;
  if (succeeded(parser.parseOptionalKeyword(&keyword))) {
    if (keyword != "inf")
      return parser.emitError(loc, "expected a number, inf or -inf"), failure();
    value = std::numeric_limits<double>::infinity();
  } else if (parser.parseFloat(value)) {
    return failure();
  }
  return parser.getBuilder().getF64FloatAttr(negative ? -value : value);
}

/// `<` map `,` storage (`,` `pad` `=` number)? `>`
Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  AffineMap map;
  StringRef keyword;
  FloatAttr pad;
  SMLoc loc = parser.getCurrentLocation(), storageLoc;
  if (parser.parseLess() || parser.parseAffineMap(map) || parser.parseComma() ||
      parser.getCurrentLocation(&storageLoc) || parser.parseKeyword(&keyword))
    return {};
  std::optional<Storage> storage = symbolizeStorage(keyword);
  if (!storage) {
    parser.emitError(storageLoc)
        << "unknown storage '" << keyword
        << "', expected buffer, texel_buffer, image2d, image2d_array or image3d";
    return {};
  }
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseKeyword("pad") || parser.parseEqual())
      return {};
    FailureOr<FloatAttr> parsed = parsePad(parser);
    if (failed(parsed))
      return {};
    pad = *parsed;
  }
  if (parser.parseGreater())
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  return getChecked(function_ref<InFlightDiagnostic()>(emitError), parser.getContext(), map,
                    *storage, pad);
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << '<';
  getMap().print(printer.getStream());
  printer << ", " << stringifyStorage(getStorage());
  if (FloatAttr pad = getPad()) {
    printer << ", pad = ";
    if (pad.getValue().isInfinity())
      printer << (pad.getValue().isNegative() ? "-inf" : "inf");
    else
      printer.printFloat(pad.getValue());
  }
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

static unsigned getMinPhysicalRank(Storage storage) {
  switch (storage) {
  case Storage::Buffer:
    return 1;
  case Storage::TexelBuffer:
    return 2;
  case Storage::Image2D:
    return 3;
  case Storage::Image2DArray:
  case Storage::Image3D:
    return 4;
  }
  llvm_unreachable("unknown storage");
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, AffineMap map,
                                 Storage storage, FloatAttr pad) {
  if (map.getNumSymbols() != 0)
    return emitError() << "layout map must not have symbols";
  if (!dividesByConstants(map))
    return emitError() << "layout map must divide by positive constants only";
  unsigned minRank = getMinPhysicalRank(storage);
  if (map.getNumResults() < minRank)
    return emitError() << "storage " << stringifyStorage(storage) << " needs at least " << minRank
                       << " physical dimensions, got " << map.getNumResults();
  if (pad && !pad.getType().isF64())
    return emitError() << "padding value must be an f64, got " << pad.getType();
  if (pad && pad.getValue().isNaN())
    return emitError() << "padding value must not be NaN";
  return success();
}

/// Whether texels of this element type exist: RGBA of 8, 16 or 32 bits.
static bool isTexelElement(Type type) {
  if (type.isF16() || type.isF32())
    return true;
  auto integer = dyn_cast<IntegerType>(type);
  return integer && llvm::is_contained({8u, 16u, 32u}, integer.getWidth());
}

/// Whether the element type has the padding value.
static bool isRepresentable(const APFloat &value, Type type) {
  bool inexact = false;
  if (auto floatType = dyn_cast<FloatType>(type)) {
    APFloat converted = value;
    converted.convert(floatType.getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
    return !inexact;
  }
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return value.isZero();
  // A signless integer holds either reading of its bits.
  auto fits = [&](bool isUnsigned) {
    APSInt converted(integer.getWidth(), isUnsigned);
    return value.convertToInteger(converted, APFloat::rmTowardZero, &inexact) == APFloat::opOK;
  };
  return (!integer.isSigned() && fits(true)) || (!integer.isUnsigned() && fits(false));
}

/// Extents of the physical dimensions; failure, with the reason in `problem`, when there
/// are none.
static FailureOr<SmallVector<int64_t>> computePhysicalShape(AffineMap map, ArrayRef<int64_t> shape,
                                                            std::string &problem) {
  llvm::raw_string_ostream os(problem);
  SmallVector<int64_t> extents, origin(shape.size(), 0);
  if (llvm::is_contained(shape, 0))
    return SmallVector<int64_t>(map.getNumResults(), 0);
  int64_t size = 1;
  for (auto [i, expr] : llvm::enumerate(map.getResults())) {
    std::optional<Range> range = getExactRange(expr, Box{origin, shape});
    if (!range || range->max == std::numeric_limits<int64_t>::max()) {
      os << "cannot bound physical coordinate " << i << " of " << AffineMapAttr::get(map);
      return failure();
    }
    if (range->min < 0) {
      os << "physical coordinate " << i << " of " << AffineMapAttr::get(map) << " can be "
         << range->min << ", which is negative";
      return failure();
    }
    int64_t extent = range->max + 1;
    if (expr.getKind() == AffineExprKind::Mod)
      extent = cast<AffineConstantExpr>(cast<AffineBinaryOpExpr>(expr).getRHS()).getValue();
    extents.push_back(extent);
    if (llvm::MulOverflow(size, extent, size)) {
      os << "physical size of " << AffineMapAttr::get(map) << " does not fit 63 bits";
      return failure();
    }
  }
  return extents;
}

static LogicalResult verifyInjective(AffineMap map, ArrayRef<int64_t> shape,
                                     function_ref<InFlightDiagnostic()> emitError) {
  auto *dialect = map.getContext()->getLoadedDialect<SmartMemDialect>();
  Injectivity answer = dialect->getInjectivity(map, shape);
  if (answer.kind == Injectivity::Proved)
    return success();
  if (answer.kind == Injectivity::Unknown)
    return emitError() << "cannot prove that " << AffineMapAttr::get(map)
                       << " gives each element its own place";
  InFlightDiagnostic diag = emitError();
  diag << AffineMapAttr::get(map) << " is not injective: ";
  if (answer.first.empty())
    return diag << "there are more elements than physical coordinates";
  return diag << "elements [" << answer.first << "] and [" << answer.second << "] share a place";
}

LogicalResult LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                         function_ref<InFlightDiagnostic()> emitError) const {
  AffineMap map = getMap();
  if (shape.size() != map.getNumDims())
    return emitError() << "layout maps " << map.getNumDims()
                       << " dimensions but the tensor has rank " << shape.size();
  if (ShapedType::isDynamicShape(shape))
    return emitError() << "layout needs a tensor of static shape";
  std::string problem;
  FailureOr<SmallVector<int64_t>> extents = computePhysicalShape(map, shape, problem);
  if (failed(extents))
    return emitError() << problem;
  if (isTexelStorage()) {
    StringRef storage = stringifyStorage(getStorage());
    if (!llvm::is_contained(shape, 0) && extents->back() != kTexelLanes)
      return emitError() << "storage " << storage << " needs a last physical dimension of extent "
                         << kTexelLanes << ", got " << extents->back();
    if (!isTexelElement(elementType))
      return emitError() << "storage " << storage
                         << " holds 8, 16 or 32-bit integers, f16 or f32, got " << elementType;
  }
  if (FloatAttr pad = getPad(); pad && !isRepresentable(pad.getValue(), elementType))
    return emitError() << "padding value " << pad.getValueAsDouble() << " is not representable in "
                       << elementType;
  return verifyInjective(map, shape, emitError);
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<int64_t>> LayoutAttr::getPhysicalShape(ArrayRef<int64_t> shape) const {
  if (shape.size() != getMap().getNumDims() ||
      llvm::any_of(shape, [](int64_t extent) { return extent < 0; }))
    return failure();
  std::string problem;
  return computePhysicalShape(getMap(), shape, problem);
}

FailureOr<std::array<int64_t, 3>> LayoutAttr::getTexelExtents(ArrayRef<int64_t> shape) const {
  if (!isTexelStorage())
    return failure();
  FailureOr<SmallVector<int64_t>> extents = getPhysicalShape(shape);
  if (failed(extents))
    return failure();
  ArrayRef<int64_t> texels = ArrayRef<int64_t>(*extents).drop_back();
  // Dimensions that are addressed one by one, from the innermost; the rest is merged.
  unsigned separate = getMinPhysicalRank(getStorage()) - 2;
  std::array<int64_t, 3> result = {1, 1, 1};
  for (auto [i, extent] : llvm::enumerate(llvm::reverse(texels)))
    result[std::min<size_t>(i, separate)] *= extent;
  return result;
}

double LayoutAttr::getPadValue() const { return getPad() ? getPad().getValueAsDouble() : 0.0; }
