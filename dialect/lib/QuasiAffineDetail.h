//===- QuasiAffineDetail.h - shared by ranges and injectivity ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_LIB_QUASIAFFINEDETAIL_H
#define SMARTMEM_LIB_QUASIAFFINEDETAIL_H

#include "SmartMem/QuasiAffine.h"
#include "llvm/ADT/SmallBitVector.h"

namespace mlir::smartmem::quasiaffine {

/// Boxes up to this size are enumerated when reasoning fails: a few milliseconds.
constexpr int64_t kMaxEnumeratedPoints = 1 << 12;
/// Parts that branch and bound looks at before it gives up: about 50 ms.
constexpr unsigned kMaxSearchSteps = 1 << 12;
/// Parts up to this size are enumerated by branch and bound.
constexpr int64_t kMaxPartPoints = 128;
/// Integer programs up to this many variables are solved: beyond it the exact algorithms
/// take seconds on unlucky maps.
constexpr unsigned kMaxIntegerProgramVars = 12;

/// What interval arithmetic knows of the values of an expression.
struct ValueSet {
  int64_t min, max;          ///< Bounds.
  llvm::SmallBitVector dims; ///< The dimensions that the expression reads.
  int64_t step = 1;          ///< With `progression`: the distance between neighbours.
  bool exact = false;        ///< Both bounds are attained.
  bool progression = false;  ///< The values are exactly min, min + step, ..., max.

  bool isConstant() const { return min == max; }
};

/// Bounds of `expr` on a non-empty box; nothing on overflow.
std::optional<ValueSet> getValueSet(AffineExpr expr, Box box);

/// The value of `expr` at a point.
int64_t evaluate(AffineExpr expr, llvm::ArrayRef<int64_t> point);

/// Steps through a box in row-major order; false after the last point.
bool nextPoint(llvm::MutableArrayRef<int64_t> point, Box box);

} // namespace mlir::smartmem::quasiaffine

#endif // SMARTMEM_LIB_QUASIAFFINEDETAIL_H
