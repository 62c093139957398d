"""The dialect through its Python bindings."""

from __future__ import annotations

import io
import math
import subprocess
import sys

import mlir.ir as ir
import pytest
from mlir.dialects import arith

from smartmem_mlir.dialects import smartmem
from smartmem_mlir.dialects.layouts import (
    element_bytes,
    get_layout,
    physical_bytes,
    physical_shape,
    same_layout,
    with_layout,
)
from smartmem_mlir.ir import make_context


@pytest.fixture(autouse=True)
def context():
    with make_context() as ctx, ir.Location.unknown():
        yield ctx


def parse_map(text: str) -> ir.AffineMap:
    return ir.AffineMapAttr(ir.Attribute.parse(f"affine_map<{text}>")).value


def layout(text: str) -> smartmem.LayoutAttr:
    return ir.Attribute.parse(f"#smartmem.layout<{text}>")


PACKED = "(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4), texel_buffer"


def test_importing_the_dialects_registers_them_with_every_later_context():
    code = (
        "import smartmem_mlir.dialects, mlir.ir as ir\n"
        "with ir.Context():\n"
        "  op = ir.Module.parse('%0 = smartmem.parameter @w : tensor<2xf32>').body.operations[0]\n"
        "  print(type(op).__module__, type(op).__name__)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["smartmem_mlir.dialects._smartmem_ops_gen", "ParameterOp"]


def test_layout_attribute_has_its_parts():
    attr = smartmem.LayoutAttr.get(parse_map("(d0, d1) -> (d1, d0)"), "buffer", pad=-math.inf)
    assert isinstance(attr, ir.Attribute)
    assert attr.map == parse_map("(d0, d1) -> (d1, d0)")
    assert attr.storage == "buffer"
    assert attr.pad == -math.inf
    assert str(attr) == "#smartmem.layout<(d0, d1) -> (d1, d0), buffer, pad = -inf>"
    assert attr == layout("(d0, d1) -> (d1, d0), buffer, pad = -inf")
    assert smartmem.LayoutAttr.get(parse_map("(d0) -> (d0)"), "buffer").pad == 0.0


def test_a_parsed_attribute_comes_back_as_its_class():
    assert type(layout(PACKED)) is smartmem.LayoutAttr
    assert type(ir.Attribute.parse("#smartmem.op_class<ild_fixed>")) is smartmem.OpClassAttr
    assert type(ir.Attribute.parse("#smartmem.piece<[0 to 1] fill 0 : i8>")) is smartmem.PieceAttr


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: smartmem.LayoutAttr.get(parse_map("(d0) -> (d0)"), "texture"), "unknown storage 'texture'"),
        (lambda: smartmem.LayoutAttr.get(parse_map("(d0) -> (d0)"), "image2d"), "needs at least 3 physical dimensions"),
        (lambda: smartmem.LayoutAttr.get(parse_map("(d0) -> (d0)"), "buffer", math.nan), "must not be NaN"),
        (lambda: smartmem.LayoutAttr.get(parse_map("(d0)[s0] -> (s0)"), "buffer"), "must not have symbols"),
        (lambda: smartmem.OpClassAttr.get("fixed"), "unknown operator class 'fixed'"),
        (lambda: smartmem.PieceAttr.read([0], [1, 2], 0, parse_map("(d0) -> (d0)")), "as many lower as upper bounds"),
        (lambda: smartmem.PieceAttr.read([0], [0], 0, parse_map("(d0) -> (d0)")), "0 <= lower < upper"),
        (lambda: smartmem.PieceAttr.filled([0], [1], ir.StringAttr.get("x")), "float or integer"),
    ],
)
def test_invalid_attributes_raise_value_errors(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_products_of_dimensions_are_refused():
    """Text cannot even spell these; the API can."""
    d0, d1 = ir.AffineExpr.get_dim(0), ir.AffineExpr.get_dim(1)
    product = ir.AffineMap.get(2, 0, [ir.AffineExpr.get_mul(d0, d1)])
    with pytest.raises(ValueError, match="divide by positive constants only"):
        smartmem.LayoutAttr.get(product, "buffer")
    with pytest.raises(ValueError, match="divide by positive constants only"):
        smartmem.PieceAttr.read([0, 0], [4, 4], 0, product)


@pytest.mark.parametrize(
    ("text", "shape", "physical", "texels"),
    [
        ("(d0, d1) -> (d1, d0), buffer", [3, 5], [5, 3], None),
        # A tail fills up its texel.
        (PACKED, [3, 5], [3, 2, 4], (6, 1, 1)),
        (
            "(d0, d1, d2, d3) -> (d0, d1 floordiv 4, d2, d3, d1 mod 4), image2d",
            [2, 6, 7, 9],
            [2, 2, 7, 9, 4],
            (9, 28, 1),
        ),
        ("(d0, d1, d2) -> (d0 floordiv 4, d1, d2, d0 mod 4), image2d_array", [6, 7, 9], [2, 7, 9, 4], (9, 7, 2)),
        ("(d0, d1, d2) -> (d1, d0 floordiv 4, d1, d2, d0 mod 4), image3d", [6, 7, 9], [7, 2, 7, 9, 4], (9, 7, 14)),
        ("(d0) -> (0, d0 floordiv 4, d0 mod 4), image2d", [10], [1, 3, 4], (3, 1, 1)),
        # A row padded to 52.
        ("(d0, d1) -> (d0, d1 mod 52), buffer", [4, 49], [4, 52], None),
        ("(d0) -> (15 - d0), buffer", [4], [16], None),
        ("(d0, d1) -> (d1, d0), buffer", [0, 5], [0, 0], None),
        ("() -> (0), buffer", [], [1], None),
    ],
)
def test_physical_extents(text, shape, physical, texels):
    attr = layout(text)
    assert attr.physical_shape(shape) == physical
    if texels is None:
        with pytest.raises(ValueError, match="no texel extents"):
            attr.texel_extents(shape)
    else:
        assert attr.texel_extents(shape) == texels


def test_physical_shape_errors():
    with pytest.raises(ValueError, match="another rank"):
        layout(PACKED).physical_shape([4])
    with pytest.raises(ValueError, match="no physical shape"):
        layout("(d0) -> (d0 - 1), buffer").physical_shape([4])
    with pytest.raises(ValueError, match="no physical shape"):
        layout("(d0) -> (d0), buffer").physical_shape([ir.ShapedType.get_dynamic_size()])


def test_type_questions():
    dense = ir.Type.parse("tensor<3x5xf16>")
    packed = with_layout(dense, layout(PACKED))
    assert str(packed) == f"tensor<3x5xf16, #smartmem.layout<{PACKED}>>"
    assert get_layout(dense) is None
    assert get_layout(packed) == layout(PACKED)
    assert with_layout(packed, None) == dense
    assert same_layout(None, None)
    assert not same_layout(None, layout(PACKED))
    assert same_layout(get_layout(packed), layout(PACKED))
    assert physical_shape(dense) == (3, 5)
    assert physical_shape(packed) == (3, 2, 4)
    assert physical_bytes(dense) == 30
    assert physical_bytes(packed) == 48
    with pytest.raises(ValueError, match="holds 8, 16 or 32-bit integers"):
        with_layout(ir.Type.parse("tensor<3x5xf64>"), layout(PACKED))


@pytest.mark.parametrize(("text", "size"), [("i1", 1), ("i8", 1), ("bf16", 2), ("f32", 4), ("i64", 8), ("index", 8)])
def test_element_bytes(text, size):
    assert element_bytes(ir.Type.parse(text)) == size


def test_element_bytes_of_a_sizeless_type():
    with pytest.raises(ValueError, match="no size in bytes"):
        element_bytes(ir.Type.parse("complex<f32>"))


def test_pieces_have_their_parts():
    read = smartmem.PieceAttr.read([0, 2], [3, 5], 1, parse_map("(d0, d1) -> (d1 - 2)"))
    assert (read.lower, read.upper, read.source, read.fill) == ([0, 2], [3, 5], 1, None)
    assert read.map == parse_map("(d0, d1) -> (d1 - 2)")
    filled = smartmem.PieceAttr.filled([0], [2], ir.FloatAttr.get(ir.F32Type.get(), 1.5))
    assert (filled.lower, filled.upper, filled.source, filled.map) == ([0], [2], None, None)
    assert ir.FloatAttr(filled.fill).value == 1.5


def build_module() -> ir.Module:
    """Every operation, built from Python."""
    f32 = ir.F32Type.get()
    wide, tall = ir.RankedTensorType.get([2, 4], f32), ir.RankedTensorType.get([4, 2], f32)
    packed = with_layout(tall, layout("(d0, d1) -> (d1, d0), buffer"))
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        weight = smartmem.ParameterOp(wide, 'blocks.0/"qkv".weight').result
        turned = smartmem.ViewOp(
            tall, [weight], [smartmem.PieceAttr.read([0, 0], [4, 2], 0, parse_map("(d0, d1) -> (d1, d0)"))]
        )
        converted = smartmem.ConvertLayoutOp(packed, turned.result, reason="the kernel reads columns")
        group = smartmem.GroupOp([packed], [converted.result])
        body = group.body.blocks.append(packed)
        with ir.InsertionPoint(body):
            doubled = arith.AddFOp(body.arguments[0], body.arguments[0])
            doubled.operation.attributes[smartmem.OP_CLASS_ATTR] = smartmem.OpClassAttr.get("ili_variable")
            smartmem.YieldOp([doubled.result])
    return module


def test_operations_are_built_and_read_back():
    module = build_module()
    assert module.operation.verify()
    weight, turned, converted, group = module.body.operations
    assert weight.key.value == 'blocks.0/"qkv".weight'
    assert turned.pieces[0].map == parse_map("(d0, d1) -> (d1, d0)")
    assert list(turned.sources) == [weight.result]
    assert converted.reason.value == "the kernel reads columns"
    assert converted.source == turned.result
    assert list(group.inputs) == [converted.result]
    assert group.body.blocks[0].operations[0].attributes[smartmem.OP_CLASS_ATTR].name == "ili_variable"
    assert str(ir.Module.parse(str(module))) == str(module)


def test_bytecode_round_trip():
    module = build_module()
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    with make_context():
        assert str(ir.Module.parse(buffer.getvalue())) == str(module)


def test_a_context_of_ours_is_single_threaded_and_strict(context):
    with pytest.raises(ir.MLIRError, match="unregistered"):
        ir.Module.parse('"flow.op"() : () -> ()')
    with make_context(allow_unregistered_dialects=True):
        assert "flow.op" in str(ir.Module.parse('"flow.op"() : () -> ()'))


def test_many_questions_about_one_type_are_cheap():
    """A type verifies its encoding whenever it is asked for: slow decisions are remembered."""
    import time

    # Decided by integer programming, the slow way.
    rotated = layout("(d0, d1) -> (d0 + d1, d0 - d1 + 4999), buffer")
    f32 = ir.F32Type.get()
    start = time.process_time()
    for _ in range(2000):
        ir.RankedTensorType.get([5000, 5000], f32, rotated)
    assert time.process_time() - start < 1.0
