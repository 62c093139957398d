//===- Injectivity.cpp - does a layout give each element its own place? ---===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Suppose that two points have the same image. An expression is *shared* when it
// must have the same value at both. The results of the map are shared; from shared
// expressions others follow, as digits of a number follow from the number. When
// every dimension is shared, the points are equal and the map is injective.
//
//===----------------------------------------------------------------------===//

#include "QuasiAffineDetail.h"
#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Analysis/Presburger/Matrix.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include <map>

using namespace mlir;
using namespace mlir::smartmem;
using namespace mlir::smartmem::quasiaffine;

namespace {

/// A sum of integer multiples of atoms (dimensions, quotients and remainders).
struct LinearForm {
  SmallVector<std::pair<AffineExpr, int64_t>, 4> terms;
  int64_t constant = 0;

  static LinearForm of(AffineExpr expr) {
    LinearForm form;
    form.add(expr, 1);
    return form;
  }

  void add(AffineExpr expr, int64_t factor) {
    auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
    if (auto value = dyn_cast<AffineConstantExpr>(expr)) {
      constant += factor * value.getValue();
    } else if (binary && expr.getKind() == AffineExprKind::Add) {
      add(binary.getLHS(), factor);
      add(binary.getRHS(), factor);
    } else if (binary && expr.getKind() == AffineExprKind::Mul) {
      add(binary.getLHS(), factor * cast<AffineConstantExpr>(binary.getRHS()).getValue());
    } else {
      auto it = llvm::find_if(terms, [&](auto &term) { return term.first == expr; });
      if (it == terms.end())
        terms.emplace_back(expr, factor);
      else
        it->second += factor;
    }
  }
};

/// Collects what two points with one image must share.
class SharedValues {
public:
  explicit SharedValues(Box box) : box(box) {}

  bool contains(AffineExpr atom) const { return atoms.contains(atom); }

  /// Draws all conclusions from the results of the map.
  void close(ArrayRef<AffineExpr> results) {
    size_t before;
    do {
      before = atoms.size();
      undecoded.clear();
      for (AffineExpr result : results)
        learn(LinearForm::of(result));
      // Conclusions add atoms while we iterate: go by index.
      for (size_t i = 0; i < order.size(); ++i)
        learnFromAtom(order[i]);
      learnFromEquations();
    } while (atoms.size() != before);
  }

private:
  void insert(AffineExpr atom) {
    if (atoms.insert(atom).second)
      order.push_back(atom);
  }

  /// Width of the interval that holds the atom's values.
  std::optional<int64_t> getWidth(AffineExpr atom) const {
    std::optional<ValueSet> set = getValueSet(atom, box);
    return set ? std::optional<int64_t>(set->max - set->min) : std::nullopt;
  }

  /// The terms of a form that are not shared and not constant on the box.
  LinearForm getUnknown(const LinearForm &form) const {
    LinearForm unknown;
    for (auto [atom, factor] : form.terms)
      if (factor != 0 && !contains(atom) && getWidth(atom) != 0)
        unknown.terms.emplace_back(atom, factor);
    return unknown;
  }

  /// Width of the interval that holds the form's values.
  std::optional<int64_t> getWidth(const LinearForm &form) const {
    int64_t total = 0;
    for (auto [atom, factor] : form.terms) {
      std::optional<int64_t> width = getWidth(atom);
      int64_t scaled;
      if (!width || llvm::MulOverflow(*width, std::abs(factor), scaled) ||
          llvm::AddOverflow(total, scaled, total))
        return std::nullopt;
    }
    return total;
  }

  /// `form` is shared. Its unknown terms are too if their factors form a mixed radix:
  /// each factor exceeds what all smaller digits can add up to.
  void learn(const LinearForm &form) {
    LinearForm unknown = getUnknown(form);
    llvm::stable_sort(unknown.terms,
                      [](auto &a, auto &b) { return std::abs(a.second) < std::abs(b.second); });
    for (size_t i = 1; i < unknown.terms.size(); ++i) {
      LinearForm smaller;
      smaller.terms.assign(unknown.terms.begin(), unknown.terms.begin() + i);
      std::optional<int64_t> width = getWidth(smaller);
      if (!width || std::abs(unknown.terms[i].second) <= *width) {
        undecoded.push_back(std::move(unknown));
        return;
      }
    }
    for (auto &term : unknown.terms)
      insert(term.first);
  }

  /// The shared forms that are no mixed radix are linear equations in their unknown
  /// terms: Gauss-Jordan elimination finds those that have one solution.
  void learnFromEquations() {
    llvm::MapVector<AffineExpr, unsigned> columns;
    for (const LinearForm &form : undecoded)
      for (auto &term : form.terms)
        columns.insert({term.first, columns.size()});
    presburger::IntMatrix rows(undecoded.size(), columns.size());
    for (auto [i, form] : llvm::enumerate(undecoded))
      for (auto &term : form.terms)
        rows(i, columns[term.first]) = term.second;
    unsigned rank = 0;
    for (unsigned column = 0; column < columns.size() && rank < rows.getNumRows(); ++column) {
      unsigned pivot = rank;
      while (pivot < rows.getNumRows() && rows(pivot, column) == 0)
        ++pivot;
      if (pivot == rows.getNumRows())
        continue;
      rows.swapRows(rank, pivot);
      for (unsigned i = 0; i < rows.getNumRows(); ++i) {
        if (i == rank || rows(i, column) == 0)
          continue;
        DynamicAPInt keep = rows(rank, column), drop = rows(i, column);
        for (unsigned j = 0; j < columns.size(); ++j)
          rows(i, j) = rows(i, j) * keep - rows(rank, j) * drop;
        rows.normalizeRow(i);
      }
      ++rank;
    }
    for (unsigned i = 0; i < rank; ++i)
      if (llvm::count_if(rows.getRow(i), [](const DynamicAPInt &x) { return x != 0; }) == 1)
        for (auto &[atom, column] : columns)
          if (rows(i, column) != 0)
            insert(atom);
  }

  void learnFromAtom(AffineExpr atom) {
    auto binary = dyn_cast<AffineBinaryOpExpr>(atom);
    if (!binary)
      return;
    int64_t divisor = cast<AffineConstantExpr>(binary.getRHS()).getValue();
    if (atom.getKind() == AffineExprKind::Mod)
      learnFromRemainder(binary.getLHS(), divisor);
    else // ceildiv(x, c) = floordiv(x + c - 1, c)
      learnFromQuotient(atom.getKind() == AffineExprKind::CeilDiv ? binary.getLHS() + (divisor - 1)
                                                                  : binary.getLHS(),
                        divisor);
  }

  /// `number floordiv divisor`, with nested divisions as one.
  static AffineExpr getQuotient(AffineExpr number, int64_t divisor) {
    auto nested = dyn_cast<AffineBinaryOpExpr>(number);
    if (!nested || number.getKind() != AffineExprKind::FloorDiv)
      return number.floorDiv(divisor);
    int64_t inner = cast<AffineConstantExpr>(nested.getRHS()).getValue();
    return llvm::MulOverflow(inner, divisor, divisor) ? number : nested.getLHS().floorDiv(divisor);
  }

  /// `number mod divisor` is shared.
  void learnFromRemainder(AffineExpr number, int64_t divisor) {
    LinearForm form = LinearForm::of(number);
    // Quotient and remainder give the number.
    LinearForm quotient = LinearForm::of(getQuotient(number, divisor));
    if (getUnknown(quotient).terms.empty())
      learn(form);
    // Multiples of the divisor do not matter, shared terms are a shared shift, and
    // what remains is determined modulo the divisor: exactly, if it is narrower.
    LinearForm rest = getUnknown(form);
    llvm::erase_if(rest.terms, [&](auto &term) { return term.second % divisor == 0; });
    std::optional<int64_t> width = getWidth(rest);
    if (width && *width < divisor)
      learn(rest);
  }

  /// `number floordiv divisor` is shared.
  void learnFromQuotient(AffineExpr number, int64_t divisor) {
    // number = divisor * high + low.
    LinearForm high, low;
    LinearForm form = LinearForm::of(number);
    AffineExpr lowExpr = getAffineConstantExpr(form.constant, number.getContext());
    for (auto [atom, factor] : form.terms) {
      if (factor % divisor == 0) {
        high.terms.emplace_back(atom, factor / divisor);
      } else {
        low.terms.emplace_back(atom, factor);
        lowExpr = lowExpr + atom * factor;
      }
    }
    // low does not carry, or carries a shared amount.
    std::optional<ValueSet> set = getValueSet(lowExpr, box);
    if ((set && set->min >= 0 && set->max < divisor) || getUnknown(low).terms.empty())
      learn(high);
  }

  Box box;
  DenseSet<AffineExpr> atoms;        ///< What is shared,
  SmallVector<AffineExpr> order;     ///< in the order in which it was found.
  SmallVector<LinearForm> undecoded; ///< Shared sums whose terms are not all shared yet.
};

} // namespace

/// Looks for two points with one image among all points of a box.
static Injectivity enumerate(AffineMap map, Box box) {
  std::map<SmallVector<int64_t>, SmallVector<int64_t>> seen;
  SmallVector<int64_t> point(box.lower);
  do {
    SmallVector<int64_t> image;
    for (AffineExpr expr : map.getResults())
      image.push_back(evaluate(expr, point));
    auto [it, inserted] = seen.try_emplace(std::move(image), point);
    if (!inserted)
      return {Injectivity::Refuted, it->second, point};
  } while (nextPoint(point, box));
  return {Injectivity::Proved, {}, {}};
}

/// Whether there are more points than images.
static bool isCrowded(AffineMap map, Box box) {
  int64_t images = 1;
  for (AffineExpr expr : map.getResults()) {
    std::optional<Range> range = getExactRange(expr, box);
    if (!range || llvm::MulOverflow(images, range->max - range->min + 1, images))
      return false;
  }
  std::optional<int64_t> points = box.size();
  return !points || *points > images;
}

/// Two points with one image that first differ in dimension `split`, as an integer
/// program over both points and the quotients and remainders at each.
static std::optional<SmallVector<int64_t>> findCollision(ArrayRef<SmallVector<int64_t, 8>> results,
                                                         const FlatLinearConstraints &constraints,
                                                         Box box, unsigned split) {
  using namespace presburger;
  unsigned rank = box.lower.size(), vars = constraints.getNumVars();
  IntegerPolyhedron program(PresburgerSpace::getSetSpace(2 * vars));
  SmallVector<DynamicAPInt> row(2 * vars + 1);
  auto reset = [&] { llvm::fill(row, DynamicAPInt(0)); };
  for (unsigned copy = 0; copy < 2; ++copy) {
    unsigned offset = copy * vars;
    auto place = [&](ArrayRef<DynamicAPInt> source) {
      reset();
      llvm::copy(source.drop_back(), row.begin() + offset);
      row.back() = source.back();
    };
    for (unsigned i = 0; i < constraints.getNumEqualities(); ++i) {
      place(constraints.getEquality(i));
      program.addEquality(row);
    }
    for (unsigned i = 0; i < constraints.getNumInequalities(); ++i) {
      place(constraints.getInequality(i));
      program.addInequality(row);
    }
    for (unsigned i = 0; i < rank; ++i) {
      program.addBound(BoundType::LB, offset + i, box.lower[i]);
      program.addBound(BoundType::UB, offset + i, box.upper[i] - 1);
    }
  }
  for (ArrayRef<int64_t> result : results) {
    reset();
    for (unsigned i = 0; i < vars; ++i) {
      row[i] = result[i];
      row[vars + i] = -result[i];
    }
    program.addEquality(row);
  }
  for (unsigned i = 0; i <= split; ++i) {
    reset();
    row[i] = -1;
    row[vars + i] = 1;
    row.back() = i == split ? -1 : 0;
    i == split ? program.addInequality(row) : program.addEquality(row);
  }
  std::optional<SmallVector<DynamicAPInt, 8>> sample = program.findIntegerSample();
  if (!sample)
    return std::nullopt;
  return llvm::map_to_vector(*sample, [](const DynamicAPInt &value) { return int64_t(value); });
}

static Injectivity solve(AffineMap map, Box box) {
  std::vector<SmallVector<int64_t, 8>> results;
  FlatLinearConstraints constraints;
  unsigned rank = box.lower.size();
  if (failed(getFlattenedAffineExprs(map, &results, &constraints)) ||
      2 * constraints.getNumVars() > kMaxIntegerProgramVars)
    return {Injectivity::Unknown, {}, {}};
  for (unsigned split = 0; split < rank; ++split)
    if (auto pair = findCollision(results, constraints, box, split)) {
      ArrayRef<int64_t> values(*pair);
      return {Injectivity::Refuted, SmallVector<int64_t>(values.take_front(rank)),
              SmallVector<int64_t>(values.slice(constraints.getNumVars(), rank))};
    }
  return {Injectivity::Proved, {}, {}};
}

Injectivity smartmem::decideInjectivity(AffineMap map, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> origin(shape.size(), 0);
  Box box{origin, shape};
  std::optional<int64_t> points = box.size();
  if (points && *points <= 1)
    return {Injectivity::Proved, {}, {}};

  SharedValues shared(box);
  shared.close(map.getResults());
  bool proved = llvm::all_of(llvm::seq<unsigned>(0, shape.size()), [&](unsigned i) {
    return shape[i] == 1 || shared.contains(getAffineDimExpr(i, map.getContext()));
  });
  if (proved)
    return {Injectivity::Proved, {}, {}};

  // A corner small enough to enumerate: an example found there refutes, and a corner
  // that is the whole box decides. Extents are cut from the longest down.
  SmallVector<int64_t> corner(shape);
  for (std::optional<int64_t> size = points; !size || *size > kMaxEnumeratedPoints;
       size = Box{origin, corner}.size()) {
    int64_t &longest = *llvm::max_element(corner);
    longest = (longest + 1) / 2;
  }
  Injectivity inCorner = enumerate(map, Box{origin, corner});
  if (inCorner.kind == Injectivity::Refuted || llvm::equal(corner, shape))
    return inCorner;
  if (isCrowded(map, box))
    return {Injectivity::Refuted, {}, {}};
  return solve(map, box);
}
