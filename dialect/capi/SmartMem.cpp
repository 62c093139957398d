//===- SmartMem.cpp - C API of the smartmem dialect -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SmartMem-c/SmartMem.h"
#include "SmartMem/SmartMemAttrs.h"
#include "mlir/CAPI/AffineMap.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/CAPI/Support.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;
using namespace mlir::smartmem;

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(SmartMem, smartmem, ::mlir::smartmem::SmartMemDialect)

static_assert(SmartMemStorageBuffer == static_cast<int>(Storage::Buffer) &&
              SmartMemStorageTexelBuffer == static_cast<int>(Storage::TexelBuffer) &&
              SmartMemStorageImage2D == static_cast<int>(Storage::Image2D) &&
              SmartMemStorageImage2DArray == static_cast<int>(Storage::Image2DArray) &&
              SmartMemStorageImage3D == static_cast<int>(Storage::Image3D));

template <typename AttrT> static AttrT unwrapAs(MlirAttribute attr) {
  return cast<AttrT>(unwrap(attr));
}

/// Builds an attribute, reporting what is wrong at `loc`.
template <typename AttrT, typename... Args>
static MlirAttribute getChecked(MlirLocation loc, Args... args) {
  Location location = unwrap(loc);
  auto report = [&] { return emitError(location); };
  return wrap(static_cast<Attribute>(AttrT::getChecked(function_ref<InFlightDiagnostic()>(report),
                                                       location.getContext(), args...)));
}

//===----------------------------------------------------------------------===//
// #smartmem.layout
//===----------------------------------------------------------------------===//

bool smartmemAttrIsALayout(MlirAttribute attr) { return isa<LayoutAttr>(unwrap(attr)); }
MlirTypeID smartmemLayoutAttrGetTypeID() { return wrap(LayoutAttr::getTypeID()); }

MlirStringRef smartmemStorageToString(int32_t storage) {
  std::optional<Storage> known = symbolizeStorage(static_cast<uint32_t>(storage));
  return wrap(known ? stringifyStorage(*known) : StringRef());
}

int32_t smartmemStorageFromString(MlirStringRef name) {
  std::optional<Storage> storage = symbolizeStorage(unwrap(name));
  return storage ? static_cast<int32_t>(*storage) : -1;
}

MlirAttribute smartmemLayoutAttrGetChecked(MlirLocation loc, MlirAffineMap map, int32_t storage,
                                           const double *pad) {
  FloatAttr padAttr;
  if (pad)
    padAttr = FloatAttr::get(Float64Type::get(unwrap(loc)->getContext()), *pad);
  return getChecked<LayoutAttr>(loc, unwrap(map), static_cast<Storage>(storage), padAttr);
}

MlirAffineMap smartmemLayoutAttrGetMap(MlirAttribute attr) {
  return wrap(unwrapAs<LayoutAttr>(attr).getMap());
}

int32_t smartmemLayoutAttrGetStorage(MlirAttribute attr) {
  return static_cast<int32_t>(unwrapAs<LayoutAttr>(attr).getStorage());
}

double smartmemLayoutAttrGetPad(MlirAttribute attr) {
  return unwrapAs<LayoutAttr>(attr).getPadValue();
}
bool smartmemLayoutAttrHasPad(MlirAttribute attr) {
  return static_cast<bool>(unwrapAs<LayoutAttr>(attr).getPad());
}

bool smartmemLayoutAttrGetPhysicalShape(MlirAttribute attr, intptr_t rank, const int64_t *shape,
                                        int64_t *extents) {
  auto result = unwrapAs<LayoutAttr>(attr).getPhysicalShape(ArrayRef(shape, rank));
  if (failed(result))
    return false;
  llvm::copy(*result, extents);
  return true;
}

bool smartmemLayoutAttrGetTexelExtents(MlirAttribute attr, intptr_t rank, const int64_t *shape,
                                       int64_t extents[3]) {
  auto result = unwrapAs<LayoutAttr>(attr).getTexelExtents(ArrayRef(shape, rank));
  if (failed(result))
    return false;
  llvm::copy(*result, extents);
  return true;
}

//===----------------------------------------------------------------------===//
// #smartmem.op_class
//===----------------------------------------------------------------------===//

bool smartmemAttrIsAOpClass(MlirAttribute attr) { return isa<OpClassAttr>(unwrap(attr)); }
MlirTypeID smartmemOpClassAttrGetTypeID() { return wrap(OpClassAttr::getTypeID()); }

MlirAttribute smartmemOpClassAttrGet(MlirContext context, MlirStringRef name) {
  std::optional<OpClass> value = symbolizeOpClass(unwrap(name));
  return wrap(value ? static_cast<Attribute>(OpClassAttr::get(unwrap(context), *value))
                    : Attribute());
}

MlirStringRef smartmemOpClassAttrGetName(MlirAttribute attr) {
  return wrap(stringifyOpClass(unwrapAs<OpClassAttr>(attr).getValue()));
}

//===----------------------------------------------------------------------===//
// #smartmem.piece
//===----------------------------------------------------------------------===//

bool smartmemAttrIsAPiece(MlirAttribute attr) { return isa<PieceAttr>(unwrap(attr)); }
MlirTypeID smartmemPieceAttrGetTypeID() { return wrap(PieceAttr::getTypeID()); }

MlirAttribute smartmemPieceAttrGetReadChecked(MlirLocation loc, intptr_t rank, const int64_t *lower,
                                              const int64_t *upper, int64_t source,
                                              MlirAffineMap map) {
  return getChecked<PieceAttr>(loc, ArrayRef(lower, rank), ArrayRef(upper, rank), source,
                               unwrap(map), TypedAttr());
}

MlirAttribute smartmemPieceAttrGetFillChecked(MlirLocation loc, intptr_t rank, const int64_t *lower,
                                              const int64_t *upper, MlirAttribute fill) {
  return getChecked<PieceAttr>(loc, ArrayRef(lower, rank), ArrayRef(upper, rank), int64_t(0),
                               AffineMap(), dyn_cast<TypedAttr>(unwrap(fill)));
}

intptr_t smartmemPieceAttrGetRank(MlirAttribute attr) {
  return unwrapAs<PieceAttr>(attr).getLower().size();
}

int64_t smartmemPieceAttrGetLower(MlirAttribute attr, intptr_t dim) {
  return unwrapAs<PieceAttr>(attr).getLower()[dim];
}

int64_t smartmemPieceAttrGetUpper(MlirAttribute attr, intptr_t dim) {
  return unwrapAs<PieceAttr>(attr).getUpper()[dim];
}

bool smartmemPieceAttrIsFill(MlirAttribute attr) { return unwrapAs<PieceAttr>(attr).isFill(); }
int64_t smartmemPieceAttrGetSource(MlirAttribute attr) {
  return unwrapAs<PieceAttr>(attr).getSource();
}
MlirAffineMap smartmemPieceAttrGetMap(MlirAttribute attr) {
  return wrap(unwrapAs<PieceAttr>(attr).getMap());
}

MlirAttribute smartmemPieceAttrGetFill(MlirAttribute attr) {
  return wrap(static_cast<Attribute>(unwrapAs<PieceAttr>(attr).getFill()));
}

//===----------------------------------------------------------------------===//
// Values of constants
//===----------------------------------------------------------------------===//

bool smartmemDenseResourceGetBytes(MlirAttribute attr, MlirStringRef *bytes) {
  auto resource = dyn_cast<DenseResourceElementsAttr>(unwrap(attr));
  AsmResourceBlob *blob = resource ? resource.getRawHandle().getBlob() : nullptr;
  if (!blob)
    return false;
  *bytes = mlirStringRefCreate(blob->getData().data(), blob->getData().size());
  return true;
}
