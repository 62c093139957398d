//===- SmartMemDialect.td - the smartmem dialect -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_DIALECT_TD
#define SMARTMEM_DIALECT_TD

include "mlir/IR/OpBase.td"

def SmartMem_Dialect : Dialect {
  let name = "smartmem";
  let cppNamespace = "::mlir::smartmem";
  let summary = "Tensor layouts as encodings, layout transformations as index maps.";
  let description = [{
    The dialect says where the elements of a tensor are and which layout
    transformations remain, so that passes can remove them.

    - A **layout** (`#smartmem.layout`) is the encoding of a ranked tensor type: a
      quasi-affine map from logical index to physical coordinate, and a storage
      (buffer, texel buffer or image). A tensor without an encoding is a dense
      row-major buffer.
    - A **view** (`smartmem.view`) is a tensor that exists only as an index map.
    - A **conversion** (`smartmem.convert_layout`) is the one operation that moves
      bytes only to change a layout.
    - A **group** (`smartmem.group`) is a set of operations that runs as one kernel.
    - A **parameter** (`smartmem.parameter`) is a weight that stays outside the IR.

    Every operation of the dialect describes its lifespan: who inserts it, which
    pass must have removed it, and how it differs from its neighbours. Each bullet
    below a `Constraints:` line is one check of the verifier.

    The discardable attribute `smartmem.op_class` may stand on any operation.

    Constraints:
    - `smartmem.op_class` is an `#smartmem.op_class`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Name of the discardable attribute that holds an operation's class.
    static constexpr ::llvm::StringLiteral kOpClassAttrName = "smartmem.op_class";

    /// decideInjectivity with a memory: a type checks its encoding whenever it is
    /// asked for, not only when it is made.
    Injectivity getInjectivity(::mlir::AffineMap map, ::llvm::ArrayRef<int64_t> shape);

  private:
    using MapOnShape = std::pair<const void *, std::vector<int64_t>>;
    std::map<MapOnShape, Injectivity> injectivities;
    std::mutex injectivitiesMutex;

  public:
  }];
}

#endif // SMARTMEM_DIALECT_TD
