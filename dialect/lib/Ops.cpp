//===- Ops.cpp - smartmem.parameter and smartmem.convert_layout -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SmartMem/SmartMemOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::smartmem;

#define GET_OP_CLASSES
#include "SmartMem/SmartMemOps.cpp.inc"

//===----------------------------------------------------------------------===//
// ParameterOp
//===----------------------------------------------------------------------===//

LogicalResult ParameterOp::verify() {
  if (getKey().empty())
    return emitOpError() << "key must not be empty";
  return success();
}

void ParameterOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  // The last component of the key, when it makes an SSA name: "a/b.weight" -> %weight.
  StringRef key = getKey();
  StringRef name = key.substr(key.find_last_of("/.") + 1);
  if (!name.empty() && llvm::isAlpha(name.front()) &&
      llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
    setName(getResult(), name);
}

//===----------------------------------------------------------------------===//
// ConvertLayoutOp
//===----------------------------------------------------------------------===//

LogicalResult ConvertLayoutOp::verify() {
  RankedTensorType source = getSource().getType(), result = getType();
  if (source.dropEncoding() != result.dropEncoding())
    return emitOpError() << "may change only the encoding, got " << source << " and " << result;
  for (RankedTensorType type : {source, result})
    if (type.getEncoding() && !isa<LayoutAttr>(type.getEncoding()))
      return emitOpError() << "converts #smartmem.layout encodings, got " << type.getEncoding();
  if (getReason() && getReason()->empty())
    return emitOpError() << "reason must not be empty";
  return success();
}

OpFoldResult ConvertLayoutOp::fold(FoldAdaptor) {
  if (getSource().getType() == getType())
    return getSource();
  if (auto earlier = getSource().getDefiningOp<ConvertLayoutOp>())
    if (earlier.getSource().getType() == getType())
      return earlier.getSource();
  return {};
}

namespace {

/// A to B to C becomes A to C.
struct ComposeConversions : OpRewritePattern<ConvertLayoutOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ConvertLayoutOp op, PatternRewriter &rewriter) const override {
    auto earlier = op.getSource().getDefiningOp<ConvertLayoutOp>();
    if (!earlier)
      return rewriter.notifyMatchFailure(op, "source is not a conversion");
    rewriter.modifyOpInPlace(op, [&] {
      op.getSourceMutable().assign(earlier.getSource());
      if (!op.getReasonAttr() && earlier.getReasonAttr())
        op.setReasonAttr(earlier.getReasonAttr());
    });
    return success();
  }
};

} // namespace

void ConvertLayoutOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                  MLIRContext *context) {
  patterns.add<ComposeConversions>(context);
}
