"""Every kind of bad ONNX input gives one SmartMemError that names the file, what is wrong and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from smartmem_mlir.errors import InvalidModelError, OptionError, SmartMemError, UnsupportedModelError
from smartmem_mlir.ingress import ImportOptions, load

F32 = TensorProto.FLOAT
WEIGHT = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)


def tensor(name: str, *shape: int | str, dtype: int = F32) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, list(shape))


def model(
    nodes: list[onnx.NodeProto],
    *,
    inputs: list[onnx.ValueInfoProto] | None = None,
    outputs: list[onnx.ValueInfoProto] | None = None,
    initializers: list[onnx.TensorProto] | None = None,
    opset: int = 18,
    functions: list[onnx.FunctionProto] | None = None,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        inputs if inputs is not None else [tensor("x", 2, 64)],
        outputs if outputs is not None else [tensor("y", 2, 64)],
        initializers or [],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=functions or [])


def linear(weight: onnx.TensorProto | None = None) -> onnx.ModelProto:
    return model(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="fc")],
        initializers=[weight if weight is not None else numpy_helper.from_array(WEIGHT, "w")],
    )


def external(location: str, **entries: str) -> onnx.TensorProto:
    weight = TensorProto(name="w", data_type=F32, dims=[64, 64], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        weight.external_data.add(key=key, value=value)
    return weight


def raw(dims: list[int], data: bytes) -> onnx.TensorProto:
    return TensorProto(name="w", data_type=F32, dims=dims, raw_data=data)


def save(directory: Path, proto: onnx.ModelProto | bytes) -> Path:
    path = directory / "model.onnx"
    path.write_bytes(proto if isinstance(proto, bytes) else proto.SerializeToString())
    return path


def node(op: str, inputs: list[str], outputs: list[str], **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op, inputs, outputs, name=f"the_{op.lower()}", **attributes)


RELU = node("Relu", ["x"], ["y"])


def function(name: str, callee: str) -> onnx.FunctionProto:
    body = [helper.make_node(callee, ["a"], ["b"], domain="local")]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    return helper.make_function("local", name, ["a"], ["b"], body, opsets)


LOOP_BODY = helper.make_graph(
    [helper.make_node("Identity", ["c"], ["c2"]), helper.make_node("Relu", ["v"], ["v2"])],
    "body",
    [tensor("i", dtype=TensorProto.INT64), tensor("c", dtype=TensorProto.BOOL), tensor("v", 2, 64)],
    [tensor("c2", dtype=TensorProto.BOOL), tensor("v2", 2, 64)],
)

BRANCH = helper.make_graph([helper.make_node("Relu", ["x"], ["r"])], "branch", [], [tensor("r", 2, 64)])

Case = tuple[str, Callable[[], onnx.ModelProto | bytes], type[SmartMemError], str]

CASES: list[Case] = [
    ("empty file", lambda: b"", InvalidModelError, "empty"),
    ("not a model", lambda: b"hello, this is text\n" * 9, InvalidModelError, "not an ONNX model"),
    ("another protobuf", lambda: b"\x08\x07", InvalidModelError, "no graph"),
    ("truncated", lambda: linear().SerializeToString()[:-100], InvalidModelError, "truncated"),
    ("truncated header", lambda: linear().SerializeToString()[:40], InvalidModelError, "truncated"),
    ("opset too old", lambda: model([RELU], opset=10), UnsupportedModelError, "opset 10"),
    ("opset too new", lambda: model([RELU], opset=999), UnsupportedModelError, "opset 999"),
    (
        "undefined input",
        lambda: model([node("Add", ["x", "ghost"], ["y"])]),
        InvalidModelError,
        "Add 'the_add': input 'ghost' is not defined",
    ),
    ("undefined output", lambda: model([node("Relu", ["x"], ["z"])]), InvalidModelError, "no node computes"),
    (
        "cycle",
        lambda: model([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["a"], ["y"])]),
        InvalidModelError,
        "cycle",
    ),
    (
        "duplicate value",
        lambda: model([RELU, node("Neg", ["x"], ["y"])]),
        InvalidModelError,
        "Neg 'the_neg': value 'y' is defined twice",
    ),
    (
        "duplicate input",
        lambda: model([RELU], inputs=[tensor("x", 2, 64), tensor("x", 2, 64)]),
        InvalidModelError,
        "same name",
    ),
    (
        "duplicate initializer",
        lambda: model([RELU], initializers=[raw([1], bytes(4)), raw([1], bytes(4))]),
        InvalidModelError,
        "same name",
    ),
    ("negative input dim", lambda: model([RELU], inputs=[tensor("x", 2, -3)]), InvalidModelError, "negative"),
    ("negative weight dim", lambda: linear(raw([-64, -64], WEIGHT.tobytes())), InvalidModelError, "negative"),
    ("weight too short", lambda: linear(raw([64, 64], bytes(2000))), InvalidModelError, "2000 bytes"),
    ("weight too long", lambda: linear(raw([64, 64], bytes(20000))), InvalidModelError, "20000 bytes"),
    ("small weight too short", lambda: linear(raw([2, 2], bytes(3))), InvalidModelError, "3 bytes"),
    ("no weight data", lambda: linear(raw([64, 64], b"")), InvalidModelError, "need 16384"),
    ("absurd weight", lambda: linear(raw([1 << 40, 1 << 40], bytes(8))), InvalidModelError, "GiB"),
    ("absurd input", lambda: model([RELU], inputs=[tensor("x", 1 << 40, 64)]), InvalidModelError, "GiB"),
    (
        "absurd intermediate",
        lambda: model(
            [node("Expand", ["x", "s"], ["z"]), node("ReduceSum", ["z"], ["y"], keepdims=0)],
            inputs=[tensor("x", 1)],
            outputs=[tensor("y")],
            initializers=[numpy_helper.from_array(np.array([1 << 30, 1 << 30]), "s")],
        ),
        InvalidModelError,
        "Expand 'the_expand': shape",
    ),
    (
        "unknown operator",
        lambda: model([node("Frobnicate", ["x"], ["y"])]),
        UnsupportedModelError,
        "Frobnicate x1 (the_frobnicate): opset 18 has no such operator",
    ),
    (
        "unknown domain",
        lambda: model([helper.make_node("Gelu", ["x"], ["y"], name="g", domain="com.microsoft")]),
        UnsupportedModelError,
        "com.microsoft.Gelu x1 (g)",
    ),
    (
        "all unsupported at once",
        lambda: model(
            [
                helper.make_node("Foo", ["x"], ["a"], name="foo0"),
                helper.make_node("Bar", ["a"], ["b"], name="bar0"),
                helper.make_node("Relu", ["b"], ["c"], name="relu0"),
                helper.make_node("Foo", ["c"], ["y"], name="foo1"),
            ]
        ),
        UnsupportedModelError,
        "Bar x1 (bar0): opset 18 has no such operator; Foo x2 (foo0, foo1): ",
    ),
    (
        "wrong operand shapes",
        lambda: model([node("MatMul", ["x", "x"], ["y"])]),
        InvalidModelError,
        "MatMul 'the_matmul': its operands do not fit",
    ),
    (
        "unknown attribute",
        lambda: model([node("Relu", ["x"], ["y"], sharpness=3)]),
        InvalidModelError,
        "sharpness",
    ),
    (
        "loop of unknown length",
        lambda: model(
            [node("Loop", ["n", "t", "x"], ["y"], body=LOOP_BODY)],
            inputs=[tensor("x", 2, 64), tensor("n", dtype=TensorProto.INT64)],
            initializers=[numpy_helper.from_array(np.array(True), "t")],
        ),
        UnsupportedModelError,
        "Loop x1 (the_loop): its number of iterations is only known when the model runs",
    ),
    (
        "loop too long",
        lambda: model(
            [node("Loop", ["n", "t", "x"], ["y"], body=LOOP_BODY)],
            initializers=[
                numpy_helper.from_array(np.array(1 << 40), "n"),
                numpy_helper.from_array(np.array(True), "t"),
            ],
        ),
        UnsupportedModelError,
        "too many to unroll",
    ),
    (
        "if on an input",
        lambda: model(
            [node("If", ["c"], ["y"], then_branch=BRANCH, else_branch=BRANCH)],
            inputs=[tensor("x", 2, 64), tensor("c", dtype=TensorProto.BOOL)],
        ),
        UnsupportedModelError,
        "If x1 (the_if): its condition is only known when the model runs",
    ),
    (
        "shape from values",
        lambda: model([node("NonZero", ["x"], ["y"])], outputs=[tensor("y", 2, "n", dtype=TensorProto.INT64)]),
        UnsupportedModelError,
        "NonZero x1 (the_nonzero)",
    ),
    (
        "recursive functions",
        lambda: model(
            [helper.make_node("F", ["x"], ["y"], domain="local")], functions=[function("F", "G"), function("G", "F")]
        ),
        InvalidModelError,
        "calls itself",
    ),
    (
        "string input",
        lambda: model([RELU], inputs=[tensor("x", 2, 64, dtype=TensorProto.STRING)]),
        UnsupportedModelError,
        "type string",
    ),
    (
        "bfloat16 weight",
        lambda: linear(TensorProto(name="w", data_type=TensorProto.BFLOAT16, dims=[64, 64], raw_data=bytes(8192))),
        UnsupportedModelError,
        "bfloat16",
    ),
    (
        "undefined element type",
        lambda: linear(TensorProto(name="w", data_type=77, dims=[64, 64], raw_data=bytes(8192))),
        UnsupportedModelError,
        "type 77",
    ),
    ("external data missing", lambda: linear(external("gone.bin")), InvalidModelError, "'gone.bin' is missing"),
    ("external data absolute", lambda: linear(external("/etc/passwd")), InvalidModelError, "absolute"),
    ("external data on a drive", lambda: linear(external("C:\\w.bin")), InvalidModelError, "absolute"),
    ("external data outside", lambda: linear(external("../w.bin")), InvalidModelError, "leaves the model's"),
    ("external data outside deep", lambda: linear(external("a/../../w.bin")), InvalidModelError, "leaves"),
    ("external data through a link", lambda: linear(external("link.bin")), InvalidModelError, "leaves"),
    ("external data in a directory", lambda: linear(external("sub")), InvalidModelError, "missing"),
    ("external data nameless", lambda: linear(external("")), InvalidModelError, "no location"),
    ("external data short", lambda: linear(external("short.bin")), InvalidModelError, "out of range"),
    ("external offset beyond", lambda: linear(external("w.bin", offset="9999999")), InvalidModelError, "range"),
    ("external offset negative", lambda: linear(external("w.bin", offset="-4")), InvalidModelError, "'-4'"),
    ("external length wrong", lambda: linear(external("w.bin", length="100")), InvalidModelError, "100 bytes"),
]


@pytest.mark.parametrize(("make", "kind", "text"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_bad_model_is_one_clear_error(
    tmp_path: Path, make: Callable[[], onnx.ModelProto | bytes], kind: type[SmartMemError], text: str
) -> None:
    directory = tmp_path / "model"
    (directory / "sub").mkdir(parents=True)
    (directory / "w.bin").write_bytes(WEIGHT.tobytes())
    (directory / "short.bin").write_bytes(bytes(16))
    (tmp_path / "w.bin").write_bytes(WEIGHT.tobytes())
    os.symlink(tmp_path / "w.bin", directory / "link.bin")
    path = save(directory, make())
    with pytest.raises(kind) as caught:
        load(path)
    assert text in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(InvalidModelError, match="no such file"):
        load(tmp_path / "absent.onnx")
    with pytest.raises(InvalidModelError, match="is a directory"):
        load(tmp_path)


def test_a_torch_archive_must_be_trusted(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    path.write_bytes(b"PK")
    with pytest.raises(OptionError, match=r"torch runs code from a \.pt2"):
        load(path)


def dynamic() -> onnx.ModelProto:
    return model(
        [node("Relu", ["x"], ["y"])],
        inputs=[tensor("x", "batch", 3, "size", None)],  # type: ignore[list-item]
        outputs=[tensor("y", "batch", 3, "size", None)],  # type: ignore[list-item]
    )


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        ({}, ["batch (axis 0 of 'x')", "size (axis 2 of 'x')", "--dim batch=N --dim size=N --dim x:3=N"]),
        ({"batch": 1, "size": 8}, ["--dim x:3=N"]),
        ({"batch": 1, "size": 8, "x:3": 8, "depth": 2}, ["'depth', which no input has", "'batch', 'size'"]),
        ({"batch": 0, "size": 8, "x:3": 8}, ["--dim batch=0: a size must be positive"]),
        ({"batch": -1, "size": 8, "x:3": 8}, ["--dim batch=-1"]),
        ({"batch": 1, "size": 8, "x:3": 8, "x:1": 4}, ["--dim x:1=4: the model fixes this dimension to 3"]),
    ],
)
def test_dims(tmp_path: Path, dims: dict[str, int], expected: list[str]) -> None:
    path = save(tmp_path, dynamic())
    with pytest.raises(OptionError) as caught:
        load(path, ImportOptions(dims=dims))
    for text in expected:
        assert text in str(caught.value)


def test_unknown_rank(tmp_path: Path) -> None:
    unranked = helper.make_tensor_value_info("x", F32, None)
    with pytest.raises(UnsupportedModelError, match="no shape"):
        load(save(tmp_path, model([RELU], inputs=[unranked])))
