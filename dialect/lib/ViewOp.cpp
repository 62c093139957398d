//===- ViewOp.cpp - smartmem.view -----------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SmartMem/QuasiAffine.h"
#include "SmartMem/SmartMemOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::smartmem;

static auto getPieceList(ArrayAttr pieces) { return pieces.getAsRange<PieceAttr>(); }

/// Whether the piece's box is the whole index space of `shape`.
static bool isWhole(PieceAttr piece, ArrayRef<int64_t> shape) {
  return llvm::all_of(piece.getLower(), [](int64_t lo) { return lo == 0; }) &&
         piece.getUpper() == shape;
}

AffineMap ViewOp::getSingleMap() {
  if (getSources().size() != 1 || getPieces().size() != 1)
    return {};
  auto piece = cast<PieceAttr>(getPieces()[0]);
  return isWhole(piece, getType().getShape()) ? piece.getMap() : AffineMap();
}

//===----------------------------------------------------------------------===//
// Assembly
//===----------------------------------------------------------------------===//

/// sources (`at` map | `pieces` `[` piece,* `]`) attr-dict `:` functional-type
ParseResult ViewOp::parse(OpAsmParser &parser, OperationState &state) {
  SmallVector<OpAsmParser::UnresolvedOperand> sources;
  SmallVector<Attribute> pieces;
  AffineMap map;
  FunctionType type;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperandList(sources))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("at"))) {
    if (parser.parseAffineMap(map))
      return failure();
  } else {
    auto parsePiece = [&]() -> ParseResult {
      PieceAttr piece = PieceAttr::parseBody(parser);
      pieces.push_back(piece);
      return success(static_cast<bool>(piece));
    };
    if (parser.parseKeyword("pieces", " or 'at'") ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parsePiece))
      return failure();
  }
  if (parser.parseOptionalAttrDict(state.attributes) || parser.parseColonType(type) ||
      parser.resolveOperands(sources, type.getInputs(), loc, state.operands))
    return failure();
  if (map) {
    auto result =
        type.getNumResults() == 1 ? dyn_cast<RankedTensorType>(type.getResult(0)) : nullptr;
    if (!result)
      return parser.emitError(loc, "expected one ranked tensor result");
    SmallVector<int64_t> origin(result.getRank(), 0);
    if (llvm::is_contained(result.getShape(), 0))
      return parser.emitError(loc, "expected 'pieces []' for an empty result");
    auto emitError = [&] { return parser.emitError(loc); };
    auto piece = PieceAttr::getChecked(function_ref<InFlightDiagnostic()>(emitError),
                                       parser.getContext(), ArrayRef<int64_t>(origin),
                                       result.getShape(), int64_t(0), map, TypedAttr());
    if (!piece)
      return failure();
    pieces.push_back(piece);
  }
  state.addAttribute(getPiecesAttrName(state.name), parser.getBuilder().getArrayAttr(pieces));
  state.addTypes(type.getResults());
  return success();
}

void ViewOp::print(OpAsmPrinter &printer) {
  if (!getSources().empty())
    printer << ' ' << getSources();
  if (AffineMap map = getSingleMap()) {
    printer << " at ";
    map.print(printer.getStream());
  } else {
    printer << " pieces [";
    printer.increaseIndent();
    llvm::interleave(
        getPieceList(getPieces()),
        [&](PieceAttr piece) {
          printer.printNewline();
          piece.printBody(printer);
        },
        [&] { printer << ','; });
    printer.decreaseIndent();
    if (!getPieces().empty())
      printer.printNewline();
    printer << ']';
  }
  printer.printOptionalAttrDict((*this)->getAttrs(), {getPiecesAttrName()});
  printer << " : ";
  printer.printFunctionalType(*this);
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// One piece against the result and its source.
static LogicalResult verifyPiece(ViewOp op, unsigned index, PieceAttr piece) {
  RankedTensorType result = op.getType();
  auto emitError = [&] { return op.emitOpError() << "piece " << index << ' '; };
  if (static_cast<int64_t>(piece.getLower().size()) != result.getRank())
    return emitError() << "has rank " << piece.getLower().size() << " but the result has rank "
                       << result.getRank();
  for (auto [i, hi] : llvm::enumerate(piece.getUpper()))
    if (hi > result.getDimSize(i))
      return emitError() << "ends at " << hi << " in dimension " << i
                         << ", beyond the result's extent " << result.getDimSize(i);
  if (piece.isFill()) {
    if (piece.getFill().getType() != result.getElementType())
      return emitError() << "fills with " << piece.getFill() << " but the result holds "
                         << result.getElementType();
    return success();
  }
  if (piece.getSource() >= static_cast<int64_t>(op.getSources().size()))
    return emitError() << "reads source " << piece.getSource() << " but there are "
                       << op.getSources().size();
  auto source = cast<RankedTensorType>(op.getSources()[piece.getSource()].getType());
  AffineMap map = piece.getMap();
  if (map.getNumResults() != source.getRank())
    return emitError() << "maps to " << map.getNumResults() << " dimensions but source "
                       << piece.getSource() << " has rank " << source.getRank();
  for (auto [i, expr] : llvm::enumerate(map.getResults())) {
    Box box{piece.getLower(), piece.getUpper()};
    std::optional<Range> range = getBounds(expr, box);
    if (range && range->min >= 0 && range->max < source.getDimSize(i))
      continue;
    if (range)
      range = getExactRange(expr, box);
    if (!range)
      return emitError() << "has an index that cannot be bounded: dimension " << i << " of "
                         << AffineMapAttr::get(map);
    int64_t extent = source.getDimSize(i), outside = range->min < 0 ? range->min : range->max;
    if (outside < 0 || outside >= extent)
      return emitError() << "reads index " << outside << " of dimension " << i << " of source "
                         << piece.getSource() << ", whose extent is " << extent;
  }
  return success();
}

/// Every element of the result lies in exactly one box.
static LogicalResult verifyPartition(ViewOp op) {
  SmallVector<PieceAttr> pieces(getPieceList(op.getPieces()));
  // Boxes that overlap overlap in dimension 0, so only neighbours there are compared.
  llvm::stable_sort(pieces, [](PieceAttr a, PieceAttr b) { return a.getLower() < b.getLower(); });
  auto overlap = [](PieceAttr a, PieceAttr b) {
    return llvm::all_of(llvm::zip_equal(a.getLower(), a.getUpper(), b.getLower(), b.getUpper()),
                        [](auto box) {
                          auto [aLo, aHi, bLo, bHi] = box;
                          return aLo < bHi && bLo < aHi;
                        });
  };
  int64_t covered = 0;
  for (auto [i, piece] : llvm::enumerate(pieces)) {
    for (PieceAttr other : ArrayRef<PieceAttr>(pieces).drop_front(i + 1)) {
      if (op.getType().getRank() > 0 && other.getLower()[0] >= piece.getUpper()[0])
        break;
      if (overlap(piece, other))
        return op.emitOpError() << "pieces overlap: " << piece << " and " << other;
    }
    covered += *Box{piece.getLower(), piece.getUpper()}.size();
  }
  int64_t elements = op.getType().getNumElements();
  if (covered != elements)
    return op.emitOpError() << "pieces cover " << covered << " of " << elements << " elements";
  return success();
}

LogicalResult ViewOp::verify() {
  for (auto [i, source] : llvm::enumerate(getSources()))
    if (getElementTypeOrSelf(source.getType()) != getType().getElementType())
      return emitOpError() << "source " << i << " holds " << getElementTypeOrSelf(source.getType())
                           << " but the result holds " << getType().getElementType();
  SmallVector<int64_t> origin(getType().getRank(), 0);
  if (!Box{origin, getType().getShape()}.size())
    return emitOpError() << "result size does not fit 63 bits";
  for (auto [i, piece] : llvm::enumerate(getPieceList(getPieces())))
    if (failed(verifyPiece(*this, i, piece)))
      return failure();
  return verifyPartition(*this);
}

//===----------------------------------------------------------------------===//
// Folding and canonicalization
//===----------------------------------------------------------------------===//

OpFoldResult ViewOp::fold(FoldAdaptor) {
  AffineMap map = getSingleMap();
  if (map && map.isIdentity() && getSources()[0].getType() == getType())
    return getSources()[0];
  return {};
}

namespace {

/// Drops sources that no piece reads and merges sources that are one value.
struct SimplifySources : OpRewritePattern<ViewOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ViewOp op, PatternRewriter &rewriter) const override {
    llvm::MapVector<Value, int64_t> position; // source -> its new index
    SmallVector<Attribute> pieces;
    for (PieceAttr piece : getPieceList(op.getPieces())) {
      if (!piece.isFill()) {
        Value source = op.getSources()[piece.getSource()];
        int64_t index = position.insert({source, position.size()}).first->second;
        piece =
            PieceAttr::get(getContext(), piece.getLower(), piece.getUpper(), index, piece.getMap());
      }
      pieces.push_back(piece);
    }
    if (position.size() == op.getSources().size())
      return failure();
    SmallVector<Value> sources = llvm::to_vector(llvm::make_first_range(position));
    rewriter.modifyOpInPlace(op, [&] {
      op.getSourcesMutable().assign(sources);
      op.setPiecesAttr(rewriter.getArrayAttr(pieces));
    });
    return success();
  }
};

/// Joins two pieces that read the same way and whose boxes make one box.
struct JoinPieces : OpRewritePattern<ViewOp> {
  using OpRewritePattern::OpRewritePattern;

  static PieceAttr join(PieceAttr a, PieceAttr b) {
    if (a.getFill() != b.getFill() || a.getSource() != b.getSource() || a.getMap() != b.getMap())
      return {};
    std::optional<size_t> touching; // the one dimension in which they differ
    for (size_t i = 0; i < a.getLower().size(); ++i) {
      if (a.getLower()[i] == b.getLower()[i] && a.getUpper()[i] == b.getUpper()[i])
        continue;
      if (touching || a.getUpper()[i] != b.getLower()[i])
        return {};
      touching = i;
    }
    assert(touching && "verified boxes do not coincide");
    return PieceAttr::get(a.getContext(), a.getLower(), b.getUpper(), a.getSource(), a.getMap(),
                          a.getFill());
  }

  LogicalResult matchAndRewrite(ViewOp op, PatternRewriter &rewriter) const override {
    SmallVector<PieceAttr> pieces(getPieceList(op.getPieces()));
    for (size_t i = 0; i < pieces.size(); ++i)
      for (size_t j = 0; j < pieces.size(); ++j) {
        PieceAttr joined = i == j ? PieceAttr() : join(pieces[i], pieces[j]);
        if (!joined)
          continue;
        pieces[i] = joined;
        pieces.erase(pieces.begin() + j);
        SmallVector<Attribute> attrs(pieces.begin(), pieces.end());
        rewriter.modifyOpInPlace(op, [&] { op.setPiecesAttr(rewriter.getArrayAttr(attrs)); });
        return success();
      }
    return failure();
  }
};

} // namespace

void ViewOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<SimplifySources, JoinPieces>(context);
}
