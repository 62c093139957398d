//===- SmartMem.h - C API of the smartmem dialect -----------------*- C -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_C_SMARTMEM_H
#define SMARTMEM_C_SMARTMEM_H

#include "mlir-c/AffineMap.h"
#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(SmartMem, smartmem);

//===----------------------------------------------------------------------===//
// #smartmem.layout
//===----------------------------------------------------------------------===//

/// The values of the C++ enum Storage.
typedef enum SmartMemStorage {
  SmartMemStorageBuffer = 0,
  SmartMemStorageTexelBuffer = 1,
  SmartMemStorageImage2D = 2,
  SmartMemStorageImage2DArray = 3,
  SmartMemStorageImage3D = 4,
} SmartMemStorage;

MLIR_CAPI_EXPORTED bool smartmemAttrIsALayout(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirTypeID smartmemLayoutAttrGetTypeID(void);

/// Name of a storage in the assembly; a null string for values outside the enum.
MLIR_CAPI_EXPORTED MlirStringRef smartmemStorageToString(int32_t storage);
/// The storage with this name, or -1.
MLIR_CAPI_EXPORTED int32_t smartmemStorageFromString(MlirStringRef name);

/// A layout; null with a diagnostic at `loc` when it is not valid. `pad` may be null
/// (zero) and points to the padding value otherwise.
MLIR_CAPI_EXPORTED MlirAttribute smartmemLayoutAttrGetChecked(MlirLocation loc, MlirAffineMap map,
                                                              int32_t storage, const double *pad);
MLIR_CAPI_EXPORTED MlirAffineMap smartmemLayoutAttrGetMap(MlirAttribute attr);
MLIR_CAPI_EXPORTED int32_t smartmemLayoutAttrGetStorage(MlirAttribute attr);
MLIR_CAPI_EXPORTED double smartmemLayoutAttrGetPad(MlirAttribute attr);
MLIR_CAPI_EXPORTED bool smartmemLayoutAttrHasPad(MlirAttribute attr);

/// Writes one extent per result of the map; false when the layout has no physical
/// shape for a tensor of this shape.
MLIR_CAPI_EXPORTED bool smartmemLayoutAttrGetPhysicalShape(MlirAttribute attr, intptr_t rank,
                                                           const int64_t *shape, int64_t *extents);
/// Writes (x, y, z) in texels; false for buffers too.
MLIR_CAPI_EXPORTED bool smartmemLayoutAttrGetTexelExtents(MlirAttribute attr, intptr_t rank,
                                                          const int64_t *shape, int64_t extents[3]);

//===----------------------------------------------------------------------===//
// #smartmem.op_class
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool smartmemAttrIsAOpClass(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirTypeID smartmemOpClassAttrGetTypeID(void);
/// The class with this name; null when there is none.
MLIR_CAPI_EXPORTED MlirAttribute smartmemOpClassAttrGet(MlirContext context, MlirStringRef name);
MLIR_CAPI_EXPORTED MlirStringRef smartmemOpClassAttrGetName(MlirAttribute attr);

//===----------------------------------------------------------------------===//
// #smartmem.piece
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool smartmemAttrIsAPiece(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirTypeID smartmemPieceAttrGetTypeID(void);
/// A piece that reads a source; null with a diagnostic at `loc` when it is not valid.
MLIR_CAPI_EXPORTED MlirAttribute smartmemPieceAttrGetReadChecked(MlirLocation loc, intptr_t rank,
                                                                 const int64_t *lower,
                                                                 const int64_t *upper,
                                                                 int64_t source, MlirAffineMap map);
/// A piece of one constant; null with a diagnostic at `loc` when it is not valid.
MLIR_CAPI_EXPORTED MlirAttribute smartmemPieceAttrGetFillChecked(MlirLocation loc, intptr_t rank,
                                                                 const int64_t *lower,
                                                                 const int64_t *upper,
                                                                 MlirAttribute fill);
MLIR_CAPI_EXPORTED intptr_t smartmemPieceAttrGetRank(MlirAttribute attr);
MLIR_CAPI_EXPORTED int64_t smartmemPieceAttrGetLower(MlirAttribute attr, intptr_t dim);
MLIR_CAPI_EXPORTED int64_t smartmemPieceAttrGetUpper(MlirAttribute attr, intptr_t dim);
MLIR_CAPI_EXPORTED bool smartmemPieceAttrIsFill(MlirAttribute attr);
/// Only for pieces that read a source.
MLIR_CAPI_EXPORTED int64_t smartmemPieceAttrGetSource(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirAffineMap smartmemPieceAttrGetMap(MlirAttribute attr);
/// The constant; null for pieces that read a source.
MLIR_CAPI_EXPORTED MlirAttribute smartmemPieceAttrGetFill(MlirAttribute attr);

//===----------------------------------------------------------------------===//
// Values of constants
//===----------------------------------------------------------------------===//

/// The bytes behind a `dense_resource` attribute; false when its blob is not in memory.
/// They live as long as the context.
MLIR_CAPI_EXPORTED bool smartmemDenseResourceGetBytes(MlirAttribute attr, MlirStringRef *bytes);

#ifdef __cplusplus
}
#endif

#endif // SMARTMEM_C_SMARTMEM_H
