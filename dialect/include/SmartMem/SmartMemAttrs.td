//===- SmartMemAttrs.td - attributes of the smartmem dialect --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_ATTRS_TD
#define SMARTMEM_ATTRS_TD

include "SmartMem/SmartMemDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

def SmartMem_Storage : I32EnumAttr<"Storage", "memory object that holds a tensor", [
    I32EnumAttrCase<"Buffer", 0, "buffer">,
    I32EnumAttrCase<"TexelBuffer", 1, "texel_buffer">,
    I32EnumAttrCase<"Image2D", 2, "image2d">,
    I32EnumAttrCase<"Image2DArray", 3, "image2d_array">,
    I32EnumAttrCase<"Image3D", 4, "image3d">]> {
  let cppNamespace = "::mlir::smartmem";
  let genSpecializedAttr = 0;
}

def SmartMem_OpClass : I32EnumAttr<"OpClass", "how an operation depends on its layouts", [
    I32EnumAttrCase<"IldVariable", 0, "ild_variable">,
    I32EnumAttrCase<"IliVariable", 1, "ili_variable">,
    I32EnumAttrCase<"IldFixed", 2, "ild_fixed">,
    I32EnumAttrCase<"IliFixed", 3, "ili_fixed">]> {
  let cppNamespace = "::mlir::smartmem";
  let genSpecializedAttr = 0;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class SmartMem_Attr<string name, string mnem, list<Trait> traits = []>
    : AttrDef<SmartMem_Dialect, name, traits> {
  let mnemonic = mnem;
}

def SmartMem_LayoutAttr : SmartMem_Attr<"Layout", "layout", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "Where the elements of a tensor are";
  let description = [{
    The encoding of a ranked tensor type. The map takes a logical index to a
    *physical coordinate*; the storage says in which memory object that coordinate
    is looked up. A tensor without encoding has the row-major `buffer` layout.

    ```mlir
    // NCHW in a 2.5D image: texels hold 4 channels, x = W, y = (N, C/4, H).
    #smartmem.layout<(d0, d1, d2, d3) -> (d0, d1 floordiv 4, d2, d3, d1 mod 4), image2d>
    // Rows of 49 scores, padded to 52 with a value that a softmax ignores.
    #smartmem.layout<(d0, d1) -> (d0, d1 floordiv 52, d1 mod 52), buffer, pad = -inf>
    ```

    **Physical shape.** The extent of a physical dimension written `e mod c` is `c`;
    of any other dimension it is its largest coordinate plus one. Cells that no
    logical index maps to are *padding*. They hold `pad`, which is zero when the
    layout does not say otherwise, so kernels may read them.

    **Storage.** With `P` physical dimensions:

    | storage | dimensions | addressing |
    |---|---|---|
    | `buffer` | `P >= 1` | element = row-major over all dimensions |
    | `texel_buffer` | `P >= 2`, (..., lane) | texel = row-major over all but the lane |
    | `image2d` | `P >= 3`, (..., x, lane) | x; y = row-major over all before x |
    | `image2d_array` | `P >= 4`, (..., y, x, lane) | x; y; layer = row-major over all before y |
    | `image3d` | `P >= 4`, (..., y, x, lane) | x; y; z = row-major over all before y |

    A texel is four lanes (RGBA). A dimension that is not wanted is written as the
    constant 0. Whether extents fit a device is the target's question, not the
    dialect's.

    Constraints:
    - the map has no symbols
    - every `floordiv`, `ceildiv` and `mod` of the map is by a positive constant
    - the map has as many results as the storage needs
    - the padding value is not NaN

    Constraints on the tensor that carries it:
    - the map has as many dimensions as the tensor
    - the tensor has a static shape
    - the physical coordinates are not negative
    - the physical size fits 63 bits
    - the lane of a texel storage has extent 4
    - texel storages hold 8, 16 or 32-bit integers, f16 or f32
    - the padding value is representable in the element type
    - no two elements share a physical coordinate

    The last one is decided exactly for the layouts met in practice (digits of
    dimensions in any order, merged, split, swizzled, independent sums), for small
    tensors and for maps of few terms; a map for which neither a proof nor a
    counterexample is found is refused.
  }];
  let parameters = (ins
    AttrParameter<"::mlir::AffineMap", "logical index to physical coordinate">:$map,
    EnumParameter<SmartMem_Storage>:$storage,
    OptionalParameter<"::mlir::FloatAttr", "f64 value of padding cells; zero when absent">:$pad);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [AttrBuilder<(ins "::mlir::AffineMap":$map, "Storage":$storage), [{
    return $_get($_ctxt, map, storage, ::mlir::FloatAttr());
  }]>];
  let extraClassDeclaration = [{
    /// Extents of the physical dimensions for a tensor of `shape`; failure when a
    /// coordinate is negative, unbounded by our analysis, or the size overflows.
    ::mlir::FailureOr<::llvm::SmallVector<int64_t>>
    getPhysicalShape(::llvm::ArrayRef<int64_t> shape) const;

    /// Extents of the texel storage as (x, y, z), z counting layers for an array;
    /// failure for `buffer` and whenever getPhysicalShape fails.
    ::mlir::FailureOr<std::array<int64_t, 3>>
    getTexelExtents(::llvm::ArrayRef<int64_t> shape) const;

    /// The value of padding cells.
    double getPadValue() const;

    /// Whether cells are addressed as texels of four lanes.
    bool isTexelStorage() const { return getStorage() != Storage::Buffer; }
  }];
}

def SmartMem_OpClassAttr : EnumAttr<SmartMem_Dialect, SmartMem_OpClass, "op_class"> {
  let summary = "The operator group of an operation";
  let description = [{
    Whether the fastest way to compute depends on the input layout (ILD) or not
    (ILI), and whether the output layout can be chosen (variable) or is fixed by the
    operation: the four groups of SmartMem (ASPLOS 2024, section 3.1). Set by
    classification as the discardable attribute `smartmem.op_class`; read where views
    are folded and layouts selected.
  }];
  let assemblyFormat = "`<` $value `>`";
}

def SmartMem_PieceAttr : SmartMem_Attr<"Piece", "piece"> {
  let summary = "One box of a view and where its elements come from";
  let description = [{
    A half-open box of the result, and for its elements either the index of a
    source operand with a quasi-affine map from result index to source index, or a
    constant.

    ```mlir
    #smartmem.piece<[0 to 4, 0 to 8] from 0 at (d0, d1) -> (d1, d0)>
    #smartmem.piece<[4 to 6, 0 to 8] fill 0.000000e+00 : f32>
    ```

    Constraints:
    - the box is not empty and not negative
    - the map has no symbols
    - the map has as many dimensions as the box
    - every `floordiv`, `ceildiv` and `mod` of the map is by a positive constant
    - the source index is not negative
    - the constant is a float or an integer
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t", "first index of the box, per dimension">:$lower,
    ArrayRefParameter<"int64_t", "one past the last index, per dimension">:$upper,
    "int64_t":$source,
    OptionalParameter<"::mlir::AffineMap", "result index to source index">:$map,
    OptionalParameter<"::mlir::TypedAttr", "the constant of a fill piece">:$fill);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [
    AttrBuilder<(ins "::llvm::ArrayRef<int64_t>":$lower, "::llvm::ArrayRef<int64_t>":$upper,
                     "int64_t":$source, "::mlir::AffineMap":$map), [{
      return $_get($_ctxt, lower, upper, source, map, ::mlir::TypedAttr());
    }]>,
    AttrBuilder<(ins "::llvm::ArrayRef<int64_t>":$lower, "::llvm::ArrayRef<int64_t>":$upper,
                     "::mlir::TypedAttr":$fill), [{
      return $_get($_ctxt, lower, upper, 0, ::mlir::AffineMap(), fill);
    }]>];
  let extraClassDeclaration = [{
    bool isFill() const { return static_cast<bool>(getFill()); }

    /// Assembly without the angle brackets, as smartmem.view prints it.
    void printBody(::mlir::AsmPrinter &printer) const;
    static PieceAttr parseBody(::mlir::AsmParser &parser);
  }];
}

def SmartMem_PieceArrayAttr
    : TypedArrayAttrBase<SmartMem_PieceAttr, "array of pieces">;

#endif // SMARTMEM_ATTRS_TD
