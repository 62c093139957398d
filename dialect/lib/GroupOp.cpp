//===- GroupOp.cpp - smartmem.group ---------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SmartMem/SmartMemOps.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::smartmem;

//===----------------------------------------------------------------------===//
// Assembly
//===----------------------------------------------------------------------===//

/// `(` (%arg `=` %input),* `)` `:` functional-type (`attributes` attr-dict)? region
ParseResult GroupOp::parse(OpAsmParser &parser, OperationState &state) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> inputs;
  FunctionType type;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseAssignmentList(arguments, inputs) || parser.parseColonType(type) ||
      parser.parseOptionalAttrDictWithKeyword(state.attributes) ||
      parser.resolveOperands(inputs, type.getInputs(), loc, state.operands))
    return failure();
  for (auto [argument, input] : llvm::zip_equal(arguments, type.getInputs()))
    argument.type = input;
  state.addTypes(type.getResults());
  return parser.parseRegion(*state.addRegion(), arguments);
}

void GroupOp::print(OpAsmPrinter &printer) {
  printer << '(';
  llvm::interleaveComma(
      llvm::zip_equal(getBody().getArguments(), getInputs()), printer,
      [&](auto pair) { printer << std::get<0>(pair) << " = " << std::get<1>(pair); });
  printer << ") : ";
  printer.printFunctionalType(*this);
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs());
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

LogicalResult GroupOp::verify() {
  if (getBody().getArgumentTypes() != getInputs().getTypes())
    return emitOpError() << "body arguments (" << getBody().getArgumentTypes()
                         << ") do not match the operands (" << getInputs().getTypes() << ")";
  return success();
}

LogicalResult GroupOp::verifyRegions() {
  auto yield = dyn_cast<YieldOp>(getBody().front().getTerminator());
  if (!yield)
    return emitOpError() << "body must end in smartmem.yield";
  if (yield.getValues().getTypes() != getResults().getTypes())
    return yield.emitOpError() << "yields (" << yield.getValues().getTypes()
                               << ") but the group gives (" << getResults().getTypes() << ")";
  WalkResult walk = getBody().walk([](Operation *op) {
    if (isa<GroupOp, ParameterOp>(op)) {
      op->emitOpError() << "must not be inside a smartmem.group";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Canonicalization
//===----------------------------------------------------------------------===//

namespace {

/// Drops operands that the body does not read and merges those given twice.
struct SimplifyInputs : OpRewritePattern<GroupOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GroupOp op, PatternRewriter &rewriter) const override {
    Block &body = op.getBody().front();
    llvm::SmallBitVector drop(body.getNumArguments());
    llvm::SmallDenseMap<Value, BlockArgument> first;
    SmallVector<Value> kept;
    for (BlockArgument argument : body.getArguments()) {
      Value input = op.getInputs()[argument.getArgNumber()];
      auto [it, isNew] = first.try_emplace(input, argument);
      if (!isNew && !argument.use_empty())
        rewriter.replaceAllUsesWith(argument, it->second);
    }
    for (BlockArgument argument : body.getArguments()) {
      if (argument.use_empty())
        drop.set(argument.getArgNumber());
      else
        kept.push_back(op.getInputs()[argument.getArgNumber()]);
    }
    if (drop.none())
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      body.eraseArguments([&](BlockArgument argument) { return drop[argument.getArgNumber()]; });
      op.getInputsMutable().assign(kept);
    });
    return success();
  }
};

/// Drops results that are not used, after forwarding operands that pass through.
struct SimplifyResults : OpRewritePattern<GroupOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GroupOp op, PatternRewriter &rewriter) const override {
    auto yield = cast<YieldOp>(op.getBody().front().getTerminator());
    SmallVector<Value> yielded, oldResults;
    for (auto [result, value] : llvm::zip_equal(op.getResults(), yield.getValues())) {
      auto argument = dyn_cast<BlockArgument>(value);
      if (argument && argument.getOwner() == yield->getBlock() && !result.use_empty())
        rewriter.replaceAllUsesWith(result, op.getInputs()[argument.getArgNumber()]);
      if (!result.use_empty()) {
        oldResults.push_back(result);
        yielded.push_back(value);
      }
    }
    if (yielded.size() == yield.getValues().size())
      return failure();
    auto smaller = GroupOp::create(rewriter, op.getLoc(), TypeRange(ValueRange(yielded)),
                                   op.getInputs(), op->getAttrs());
    rewriter.modifyOpInPlace(yield, [&] { yield.getValuesMutable().assign(yielded); });
    rewriter.inlineRegionBefore(op.getBody(), smaller.getBody(), smaller.getBody().end());
    for (auto [oldResult, newResult] : llvm::zip_equal(oldResults, smaller.getResults()))
      rewriter.replaceAllUsesWith(oldResult, newResult);
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void GroupOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<SimplifyInputs, SimplifyResults>(context);
}
