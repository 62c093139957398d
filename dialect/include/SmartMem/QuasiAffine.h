//===- QuasiAffine.h - exact facts about maps on boxes ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the verifiers ask about a quasi-affine map on a box of integer points. Each
// question is answered first by a procedure that takes time in the size of the map and
// covers the maps that occur in practice; what it leaves open is settled by a search
// with a limit: branch and bound for ranges, enumeration (small boxes) or integer
// programming (few variables) for injectivity. No question costs time in proportion to
// a large box.
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_QUASIAFFINE_H
#define SMARTMEM_QUASIAFFINE_H

#include "mlir/IR/AffineMap.h"
#include <optional>

namespace mlir::smartmem {

/// The points x with lower[i] <= x[i] < upper[i].
struct Box {
  llvm::ArrayRef<int64_t> lower, upper;

  /// Number of points, or nothing when it does not fit 63 bits.
  std::optional<int64_t> size() const;
};

/// The values that an expression takes, as closed bounds.
struct Range {
  int64_t min, max;
};

/// Whether the map multiplies by constants and divides by positive constants only: with
/// no symbols, that is what the functions below take.
bool dividesByConstants(AffineMap map);

/// Bounds of `expr` on a non-empty box, by interval arithmetic: not always attained.
/// Nothing when a value overflows 63 bits.
std::optional<Range> getBounds(AffineExpr expr, Box box);

/// Smallest and largest value of `expr` on a non-empty box. Both are attained.
/// Nothing when a value overflows 63 bits or the expression is too large to settle.
std::optional<Range> getExactRange(AffineExpr expr, Box box);

/// The answer to "does the map take two points to one?".
struct Injectivity {
  enum Kind { Proved, Refuted, Unknown } kind;
  /// When refuted by example: the two points. Empty when refuted by counting.
  llvm::SmallVector<int64_t> first, second;
};

/// Whether `map` is injective on the box [0, shape).
Injectivity decideInjectivity(AffineMap map, llvm::ArrayRef<int64_t> shape);

} // namespace mlir::smartmem

#endif // SMARTMEM_QUASIAFFINE_H
