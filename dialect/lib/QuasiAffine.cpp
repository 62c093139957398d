//===- QuasiAffine.cpp - ranges of quasi-affine expressions ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QuasiAffineDetail.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>
#include <queue>

using namespace mlir;
using namespace mlir::smartmem;
using namespace mlir::smartmem::quasiaffine;
using llvm::AddOverflow;
using llvm::MulOverflow;

/// The remainder in [0, divisor), as affine maps define `mod`.
static int64_t getRemainder(int64_t value, int64_t divisor) {
  return value - divisor * llvm::divideFloorSigned(value, divisor);
}

std::optional<int64_t> Box::size() const {
  int64_t points = 1;
  for (auto [lo, hi] : llvm::zip_equal(lower, upper)) {
    if (hi <= lo)
      return 0;
    if (MulOverflow(points, hi - lo, points))
      return std::nullopt;
  }
  return points;
}

bool smartmem::dividesByConstants(AffineMap map) {
  bool ok = true;
  map.walkExprs([&](AffineExpr expr) {
    auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
    if (!binary || expr.getKind() == AffineExprKind::Add)
      return;
    auto rhs = dyn_cast<AffineConstantExpr>(binary.getRHS());
    ok &= rhs && (expr.getKind() == AffineExprKind::Mul || rhs.getValue() > 0);
  });
  return ok;
}

int64_t quasiaffine::evaluate(AffineExpr expr, ArrayRef<int64_t> point) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return point[dim.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t lhs = evaluate(binary.getLHS(), point), rhs = evaluate(binary.getRHS(), point);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return lhs + rhs;
  case AffineExprKind::Mul:
    return lhs * rhs;
  case AffineExprKind::Mod:
    return getRemainder(lhs, rhs);
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(lhs, rhs);
  case AffineExprKind::CeilDiv:
    return llvm::divideCeilSigned(lhs, rhs);
  default:
    llvm_unreachable("not a binary expression");
  }
}

bool quasiaffine::nextPoint(MutableArrayRef<int64_t> point, Box box) {
  for (size_t i = point.size(); i-- > 0;) {
    if (++point[i] < box.upper[i])
      return true;
    point[i] = box.lower[i];
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Interval arithmetic that knows when it is exact
//===----------------------------------------------------------------------===//

/// The values min, min + step, ..., max, when they are exactly that set.
static void setProgression(ValueSet &set, int64_t step) {
  set.exact = true;
  set.progression = true;
  set.step = set.min == set.max ? 1 : step;
}

/// a + b where the operands read different dimensions, so every pair of values occurs.
static void addIndependent(const ValueSet &a, const ValueSet &b, ValueSet &sum) {
  sum.exact = a.exact && b.exact;
  if (!a.progression || !b.progression)
    return;
  if (a.isConstant() || b.isConstant())
    return setProgression(sum, a.isConstant() ? b.step : a.step);
  // The finer progression fills the gaps of the coarser one.
  const ValueSet &fine = a.step <= b.step ? a : b, &coarse = a.step <= b.step ? b : a;
  if (coarse.step % fine.step == 0 && coarse.step <= fine.max - fine.min + fine.step)
    setProgression(sum, fine.step);
}

static std::optional<ValueSet> getSum(const ValueSet &a, const ValueSet &b) {
  ValueSet sum;
  if (AddOverflow(a.min, b.min, sum.min) || AddOverflow(a.max, b.max, sum.max))
    return std::nullopt;
  sum.dims = a.dims;
  sum.dims |= b.dims;
  if (!a.dims.anyCommon(b.dims))
    addIndependent(a, b, sum);
  return sum;
}

static std::optional<ValueSet> getProduct(const ValueSet &a, int64_t factor) {
  ValueSet product = a;
  if (MulOverflow(a.min, factor, product.min) || MulOverflow(a.max, factor, product.max))
    return std::nullopt;
  if (factor < 0)
    std::swap(product.min, product.max);
  if (a.progression && factor != 0) {
    int64_t step;
    if (MulOverflow(a.step, std::abs(factor), step))
      return std::nullopt;
    setProgression(product, step);
  } else if (factor == 0) {
    setProgression(product, 1);
  }
  return product;
}

static ValueSet getQuotient(const ValueSet &a, int64_t divisor, bool ceil) {
  auto divide =
      ceil ? llvm::divideCeilSigned<int64_t, int64_t> : llvm::divideFloorSigned<int64_t, int64_t>;
  ValueSet quotient = a;
  quotient.min = divide(a.min, divisor);
  quotient.max = divide(a.max, divisor);
  quotient.progression = false;
  // Rounding is monotone: it keeps exact ends. Steps up to the divisor skip nothing.
  if (a.progression && a.step <= divisor)
    setProgression(quotient, 1);
  else if (a.progression && a.step % divisor == 0)
    setProgression(quotient, a.step / divisor);
  return quotient;
}

static ValueSet getRemainder(const ValueSet &a, int64_t divisor) {
  ValueSet rest = a;
  int64_t period = llvm::divideFloorSigned(a.min, divisor);
  if (period == llvm::divideFloorSigned(a.max, divisor)) { // no wrap: a shift
    rest.min = getRemainder(a.min, divisor);
    rest.max = rest.min + (a.max - a.min);
    return rest;
  }
  rest.min = 0;
  rest.max = divisor - 1;
  rest.exact = rest.progression = false;
  if (!a.progression)
    return rest;
  int64_t stride = std::gcd(a.step, divisor), residue = getRemainder(a.min, stride);
  if ((a.max - a.min) / a.step + 1 >= divisor / stride) { // every residue class occurs
    rest.min = residue;
    rest.max = divisor - stride + residue;
    setProgression(rest, stride);
  }
  return rest;
}

std::optional<ValueSet> quasiaffine::getValueSet(AffineExpr expr, Box box) {
  unsigned rank = box.lower.size();
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    unsigned pos = dim.getPosition();
    ValueSet set{box.lower[pos], box.upper[pos] - 1, llvm::SmallBitVector(rank)};
    set.dims.set(pos);
    setProgression(set, 1);
    return set;
  }
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    ValueSet set{constant.getValue(), constant.getValue(), llvm::SmallBitVector(rank)};
    setProgression(set, 1);
    return set;
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  std::optional<ValueSet> lhs = getValueSet(binary.getLHS(), box);
  if (!lhs)
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::Add) {
    std::optional<ValueSet> rhs = getValueSet(binary.getRHS(), box);
    return rhs ? getSum(*lhs, *rhs) : std::nullopt;
  }
  int64_t constant = cast<AffineConstantExpr>(binary.getRHS()).getValue();
  switch (expr.getKind()) {
  case AffineExprKind::Mul:
    return getProduct(*lhs, constant);
  case AffineExprKind::Mod:
    return getRemainder(*lhs, constant);
  case AffineExprKind::FloorDiv:
    return getQuotient(*lhs, constant, /*ceil=*/false);
  default:
    return getQuotient(*lhs, constant, /*ceil=*/true);
  }
}

//===----------------------------------------------------------------------===//
// Exact ranges
//===----------------------------------------------------------------------===//

namespace {

/// A part of the box, with an upper bound of the expression there.
struct Part {
  int64_t bound, points;
  SmallVector<int64_t, 6> lower, upper;

  /// The most promising part comes first, of equal ones the smallest: it is settled soonest.
  bool operator<(const Part &other) const {
    return std::tie(bound, other.points) < std::tie(other.bound, points);
  }
};

} // namespace

/// The largest value of `expr` on the box by branch and bound; nothing when the search
/// takes too long. Interval arithmetic loses little on small boxes, and most maps are
/// monotonic in the large, so few parts are ever looked at.
static std::optional<int64_t> maximize(AffineExpr expr, Box box) {
  std::priority_queue<Part> parts;
  int64_t best = std::numeric_limits<int64_t>::min();
  auto push = [&](ArrayRef<int64_t> lower, ArrayRef<int64_t> upper) {
    std::optional<ValueSet> set = getValueSet(expr, Box{lower, upper});
    std::optional<int64_t> points = Box{lower, upper}.size();
    if (!set || !points)
      return false;
    if (set->exact)
      best = std::max(best, set->max);
    else if (set->max > best)
      parts.push(
          {set->max, *points, SmallVector<int64_t, 6>(lower), SmallVector<int64_t, 6>(upper)});
    return true;
  };
  if (!push(box.lower, box.upper))
    return std::nullopt;
  for (unsigned step = 0; !parts.empty() && parts.top().bound > best; ++step) {
    if (step == kMaxSearchSteps)
      return std::nullopt;
    Part part = parts.top();
    parts.pop();
    Box here{part.lower, part.upper};
    if (part.points <= kMaxPartPoints) {
      SmallVector<int64_t> point(part.lower);
      do
        best = std::max(best, evaluate(expr, point));
      while (nextPoint(point, here));
      continue;
    }
    unsigned longest = 0;
    for (unsigned i = 1; i < part.lower.size(); ++i)
      if (part.upper[i] - part.lower[i] > part.upper[longest] - part.lower[longest])
        longest = i;
    int64_t middle = part.lower[longest] + (part.upper[longest] - part.lower[longest]) / 2;
    SmallVector<int64_t, 6> lower(part.lower), upper(part.upper);
    lower[longest] = upper[longest] = middle;
    if (!push(lower, part.upper) || !push(part.lower, upper))
      return std::nullopt;
  }
  return best;
}

std::optional<Range> smartmem::getBounds(AffineExpr expr, Box box) {
  std::optional<ValueSet> set = getValueSet(expr, box);
  return set ? std::optional<Range>({set->min, set->max}) : std::nullopt;
}

std::optional<Range> smartmem::getExactRange(AffineExpr expr, Box box) {
  std::optional<ValueSet> set = getValueSet(expr, box);
  if (!set)
    return std::nullopt;
  if (set->exact)
    return Range{set->min, set->max};
  std::optional<int64_t> max = maximize(expr, box), negatedMin = maximize(-expr, box);
  if (!max || !negatedMin)
    return std::nullopt;
  return Range{-*negatedMin, *max};
}
