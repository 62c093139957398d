//===- SmartMemOps.td - operations of the smartmem dialect ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_OPS_TD
#define SMARTMEM_OPS_TD

include "SmartMem/SmartMemAttrs.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class SmartMem_Op<string mnemonic, list<Trait> traits = []>
    : Op<SmartMem_Dialect, mnemonic, traits>;

def SmartMem_ParameterOp : SmartMem_Op<"parameter", [
    Pure, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "A weight, by the key of its values in the parameter archive";
  let description = [{
    Stands for values that are constant for the life of the module and live outside
    the IR, so that no pass ever copies or prints them. The key is any string, as
    model files have them.

    ```mlir
    %w = smartmem.parameter @"layers.0/attn/qkv.weight" : tensor<288x96xf32>
    ```

    *Lifespan:* inserted by the importers and by `smartmem-externalize-constants`;
    replaced by `smartmem-convert-to-iree`, when the module is emitted. *Neighbours:*
    unlike `arith.constant` it has no value attribute and does not fold; unlike
    `ml_program.global_load` it needs no symbol and may carry a layout, which is
    then how the archive stores the values.

    Constraints:
    - the key is not empty
  }];
  let arguments = (ins SymbolNameAttr:$key);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$key attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def SmartMem_ViewOp : SmartMem_Op<"view", [Pure]> {
  let summary = "A tensor that exists only as an index map";
  let description = [{
    The result is cut into disjoint boxes. Each piece says where the elements of its
    box come from: a source operand through a quasi-affine map from result index to
    source index, or a constant. Transpose, reshape, slice and broadcast have one
    piece; concatenation, padding and roll have several. No bytes are moved.

    ```mlir
    // A view of one source through one map.
    %t = smartmem.view %a at (d0, d1) -> (d1, d0) : (tensor<8x4xf32>) -> tensor<4x8xf32>
    // Concatenation with two rows of zeros.
    %c = smartmem.view %a, %b pieces [
      [0 to 4, 0 to 8] from 0 at (d0, d1) -> (d0, d1),
      [4 to 6, 0 to 8] from 1 at (d0, d1) -> (d0 - 4, d1),
      [6 to 8, 0 to 8] fill 0.000000e+00 : f32
    ] : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
    ```

    *Lifespan:* inserted by `smartmem-raise-views` for every data-movement operation;
    folded into its neighbours by `smartmem-fold-views`; gone after
    `smartmem-materialize-views`. *Neighbours:* it
    names elements by logical index and knows nothing of layouts, where
    `smartmem.convert_layout` keeps every index and changes only the layout. Unlike
    `tensor.collapse_shape`, `tensor.extract_slice` and their like, views are closed
    under composition.

    Constraints:
    - sources and result have static shapes
    - the number of elements of the result fits 63 bits
    - a piece has the rank of the result
    - a piece's box lies inside the result
    - the boxes do not overlap
    - the boxes cover the result
    - a piece's source index names an operand
    - a piece's map has as many results as its source has dimensions
    - a piece's map stays inside its source for every index of the box
    - sources and fill constants have the element type of the result
  }];
  let arguments = (ins Variadic<AnyStaticShapeTensor>:$sources, SmartMem_PieceArrayAttr:$pieces);
  let results = (outs AnyStaticShapeTensor:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    /// The map of a view that is one piece of one source; a null map otherwise.
    ::mlir::AffineMap getSingleMap();
  }];
}

def SmartMem_ConvertLayoutOp : SmartMem_Op<"convert_layout", [Pure]> {
  let summary = "Copy a tensor into another layout";
  let description = [{
    Values and shape stay, the encoding changes: the only operation that moves bytes
    merely to change a layout.

    ```mlir
    %1 = smartmem.convert_layout %0 reason "softmax reads rows of 52"
      : tensor<64x49xf32> -> tensor<64x49xf32, #padded>
    ```

    *Lifespan:* inserted by layout selection where neighbours disagree; pairs are
    cancelled by canonicalization and by `smartmem-fold-layouts`; the survivors become
    kernels when layouts are materialized and appear, with their reason, in the
    report. *Neighbours:* `smartmem.view` renames indices without moving bytes;
    `tensor.cast` may drop shape information and never moves bytes.

    Folds: a conversion to its own type; A to B to A. Canonicalizes: A to B to C
    becomes A to C, with the reason of the later conversion, or of the earlier one
    when the later has none.

    Constraints:
    - source and result differ in nothing but the encoding
    - the encodings are `#smartmem.layout` or absent
    - the reason is not empty
  }];
  let arguments = (ins AnyRankedTensor:$source, OptionalAttr<StrAttr>:$reason);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
      "$source (`reason` $reason^)? attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def SmartMem_GroupOp : SmartMem_Op<"group", [IsolatedFromAbove, SingleBlock, RecursiveMemoryEffects]> {
  let summary = "Operations that run as one kernel";
  let description = [{
    What the kernel reads are the operands, what it writes are the results; nothing
    else crosses its boundary. The region is isolated from above so that this holds
    whatever other passes do: a captured value would be a hidden read.

    ```mlir
    %r = smartmem.group(%x = %a, %y = %b) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
      %s = arith.addf %x, %y : tensor<8xf32>
      smartmem.yield %s : tensor<8xf32>
    }
    ```

    *Lifespan:* inserted when groups are formed, after views are folded; turned into
    kernels when layouts are materialized.
    *Neighbours:* `scf.execute_region` captures values and may be inlined at any
    time; a function has a name and may be called twice.

    Canonicalization drops operands that are not read, operands given twice and
    results that are not used or that only pass an operand through.

    Constraints:
    - the body has one argument per operand, of the same type
    - the body ends in `smartmem.yield`
    - `smartmem.yield` gives one value per result, of the same type
    - a group holds no other group
    - a group holds no `smartmem.parameter` (weights are operands: they are read)
  }];
  let arguments = (ins Variadic<AnyStaticShapeTensor>:$inputs);
  let results = (outs Variadic<AnyStaticShapeTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
}

def SmartMem_YieldOp : SmartMem_Op<"yield", [Pure, Terminator, HasParent<"GroupOp">]> {
  let summary = "The results of a group";
  let description = [{
    Ends the body of `smartmem.group`; comes and goes with it.

    Constraints:
    - its parent is a `smartmem.group`
  }];
  let arguments = (ins Variadic<AnyStaticShapeTensor>:$values);
  let builders = [OpBuilder<(ins), [{ /* nothing to yield */ }]>];
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

#endif // SMARTMEM_OPS_TD
