//===- Attributes.cpp - Python classes of the dialect's attributes --------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Extension.h"
#include "SmartMem-c/SmartMem.h"
#include "mlir/Bindings/Python/Diagnostics.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace mlir::python::nanobind_adaptors;

static MlirStringRef toRef(const std::string &text) {
  return mlirStringRefCreate(text.data(), text.size());
}
static std::string toString(MlirStringRef ref) { return std::string(ref.data, ref.length); }

/// Calls `build(location)` and turns its diagnostics into a ValueError.
template <typename BuildFn>
static nb::object getChecked(nb::object cls, MlirContext context, BuildFn build) {
  mlir::python::CollectDiagnosticsToStringScope diagnostics(context);
  MlirAttribute attr = build(mlirLocationUnknownGet(context));
  if (mlirAttributeIsNull(attr))
    throw nb::value_error(diagnostics.takeMessage().c_str());
  return cls(attr);
}

static int32_t getStorage(const std::string &name) {
  int32_t storage = smartmemStorageFromString(toRef(name));
  if (storage < 0)
    throw nb::value_error(("unknown storage '" + name + "'").c_str());
  return storage;
}

static void checkRank(MlirAttribute layout, size_t rank) {
  if (static_cast<size_t>(mlirAffineMapGetNumDims(smartmemLayoutAttrGetMap(layout))) != rank)
    throw nb::value_error("the layout has another rank than the shape");
}

static void bindLayout(nb::module_ &m) {
  mlir_attribute_subclass(m, "LayoutAttr", smartmemAttrIsALayout, smartmemLayoutAttrGetTypeID)
      .def_classmethod(
          "get",
          [](nb::object cls, MlirAffineMap map, const std::string &storage,
             std::optional<double> pad) {
            MlirContext context = mlirAffineMapGetContext(map);
            int32_t kind = getStorage(storage);
            return getChecked(std::move(cls), context, [&](MlirLocation loc) {
              return smartmemLayoutAttrGetChecked(loc, map, kind, pad ? &*pad : nullptr);
            });
          },
          nb::arg("cls"), nb::arg("map"), nb::arg("storage"), nb::arg("pad") = nb::none(),
          "A layout from a map of logical indices to physical coordinates and the name of a "
          "storage.")
      .def_property_readonly("map", smartmemLayoutAttrGetMap,
                             "Logical index to physical coordinate.")
      .def_property_readonly(
          "storage",
          [](MlirAttribute self) {
            return toString(smartmemStorageToString(smartmemLayoutAttrGetStorage(self)));
          },
          "Name of the storage: buffer, texel_buffer, image2d, image2d_array or image3d.")
      .def_property_readonly("pad", smartmemLayoutAttrGetPad,
                             "Value of padding cells; 0.0 unless given.")
      .def(
          "physical_shape",
          [](MlirAttribute self, const std::vector<int64_t> &shape) {
            std::vector<int64_t> extents(
                mlirAffineMapGetNumResults(smartmemLayoutAttrGetMap(self)));
            checkRank(self, shape.size());
            if (!smartmemLayoutAttrGetPhysicalShape(self, shape.size(), shape.data(),
                                                    extents.data()))
              throw nb::value_error("the layout has no physical shape for a tensor of this shape");
            return extents;
          },
          nb::arg("shape"), "Extents of the physical dimensions for a tensor of this shape.")
      .def(
          "texel_extents",
          [](MlirAttribute self, const std::vector<int64_t> &shape) {
            int64_t extents[3];
            checkRank(self, shape.size());
            if (!smartmemLayoutAttrGetTexelExtents(self, shape.size(), shape.data(), extents))
              throw nb::value_error("the layout has no texel extents for a tensor of this shape");
            return std::make_tuple(extents[0], extents[1], extents[2]);
          },
          nb::arg("shape"),
          "Extents (x, y, z) of the texel storage; z counts the layers of an array.");
}

static void bindOpClass(nb::module_ &m) {
  mlir_attribute_subclass(m, "OpClassAttr", smartmemAttrIsAOpClass, smartmemOpClassAttrGetTypeID)
      .def_classmethod(
          "get",
          [](nb::object cls, const std::string &name, MlirContext context) {
            MlirAttribute attr = smartmemOpClassAttrGet(context, toRef(name));
            if (mlirAttributeIsNull(attr))
              throw nb::value_error(("unknown operator class '" + name + "'").c_str());
            return cls(attr);
          },
          nb::arg("cls"), nb::arg("name"), nb::arg("context").none() = nb::none(),
          "The class ild_variable, ili_variable, ild_fixed or ili_fixed.")
      .def_property_readonly(
          "name", [](MlirAttribute self) { return toString(smartmemOpClassAttrGetName(self)); },
          "Name of the class.");
}

static std::vector<int64_t> getBounds(MlirAttribute piece,
                                      int64_t (*bound)(MlirAttribute, intptr_t)) {
  std::vector<int64_t> bounds(smartmemPieceAttrGetRank(piece));
  for (size_t i = 0; i < bounds.size(); ++i)
    bounds[i] = bound(piece, i);
  return bounds;
}

static void checkSameRank(const std::vector<int64_t> &lower, const std::vector<int64_t> &upper) {
  if (lower.size() != upper.size())
    throw nb::value_error("the box needs as many lower as upper bounds");
}

static void bindPiece(nb::module_ &m) {
  mlir_attribute_subclass(m, "PieceAttr", smartmemAttrIsAPiece, smartmemPieceAttrGetTypeID)
      .def_classmethod(
          "read",
          [](nb::object cls, const std::vector<int64_t> &lower, const std::vector<int64_t> &upper,
             int64_t source, MlirAffineMap map) {
            checkSameRank(lower, upper);
            return getChecked(std::move(cls), mlirAffineMapGetContext(map), [&](MlirLocation loc) {
              return smartmemPieceAttrGetReadChecked(loc, lower.size(), lower.data(), upper.data(),
                                                     source, map);
            });
          },
          nb::arg("cls"), nb::arg("lower"), nb::arg("upper"), nb::arg("source"), nb::arg("map"),
          "The box [lower, upper) reads operand number `source` at map(index).")
      .def_classmethod(
          "filled",
          [](nb::object cls, const std::vector<int64_t> &lower, const std::vector<int64_t> &upper,
             MlirAttribute fill) {
            checkSameRank(lower, upper);
            return getChecked(std::move(cls), mlirAttributeGetContext(fill), [&](MlirLocation loc) {
              return smartmemPieceAttrGetFillChecked(loc, lower.size(), lower.data(), upper.data(),
                                                     fill);
            });
          },
          nb::arg("cls"), nb::arg("lower"), nb::arg("upper"), nb::arg("value"),
          "The box [lower, upper) is one constant.")
      .def_property_readonly(
          "lower", [](MlirAttribute self) { return getBounds(self, smartmemPieceAttrGetLower); },
          "First index of the box, per dimension.")
      .def_property_readonly(
          "upper", [](MlirAttribute self) { return getBounds(self, smartmemPieceAttrGetUpper); },
          "One past the last index of the box, per dimension.")
      .def_property_readonly(
          "source",
          [](MlirAttribute self) {
            return smartmemPieceAttrIsFill(self)
                       ? std::nullopt
                       : std::optional<int64_t>(smartmemPieceAttrGetSource(self));
          },
          "Number of the source operand; None for a constant.")
      .def_property_readonly(
          "map",
          [](MlirAttribute self) {
            return smartmemPieceAttrIsFill(self) ? nb::object(nb::none())
                                                 : nb::cast(smartmemPieceAttrGetMap(self));
          },
          "Result index to source index; None for a constant.")
      .def_property_readonly(
          "fill",
          [](MlirAttribute self) {
            return smartmemPieceAttrIsFill(self) ? nb::cast(smartmemPieceAttrGetFill(self))
                                                 : nb::object(nb::none());
          },
          "The constant; None for a piece that reads a source.");
}

void smartmem::python::bindAttributes(nb::module_ &m) {
  bindLayout(m);
  bindOpClass(m);
  bindPiece(m);
  m.def(
      "dense_resource_bytes",
      [](MlirAttribute attr) {
        MlirStringRef bytes;
        return smartmemDenseResourceGetBytes(attr, &bytes)
                   ? nb::object(nb::bytes(bytes.data, bytes.length))
                   : nb::object(nb::none());
      },
      nb::arg("attr"), nb::sig("def dense_resource_bytes(attr: mlir.ir.Attribute) -> bytes | None"),
      "The bytes behind a dense_resource attribute; None when they are not in memory.");
}
