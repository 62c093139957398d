"""From an ONNX file to module text, specs and parameters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import model, random_feeds, run_onnxruntime, save, specialized, value

from smartmem_mlir.errors import UnsupportedModelError
from smartmem_mlir.ingress import ImportOptions, load
from smartmem_mlir.ingress.child_process import child_environment

RNG = np.random.default_rng(0)
WEIGHT = RNG.standard_normal((64, 32)).astype(np.float32)
BIAS = RNG.standard_normal(32).astype(np.float32)


def node(op: str, inputs: list[str], output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, [output], name=f"{op}_{output}", **attributes)


def linear(name: str = "fc.weight") -> onnx.ModelProto:
    return model(
        [node("MatMul", ["x", name], "m"), node("Add", ["m", "b"], "s"), node("Relu", ["s"], "y")],
        [value("x", [4, 64])],
        ["y"],
        {name: WEIGHT, "b": BIAS},
    )


def torchscript_style() -> onnx.ModelProto:
    """Split heads the way the TorchScript exporter writes it: the shape as a Shape/Gather/Concat chain, a Mod for
    the padding, an If on a size, and a mask by ConstantOfShape."""
    then = helper.make_graph([node("Identity", ["pad"], "same")], "then", [], [value("same", None)])
    other = helper.make_graph([node("Relu", ["pad"], "clamped")], "other", [], [value("clamped", None)])
    return model(
        [
            node("Shape", ["x"], "shape"),
            node("Gather", ["shape", "i0"], "batch", axis=0),
            node("Gather", ["shape", "i1"], "tokens", axis=0),
            node("Mod", ["tokens", "window"], "rest"),
            node("Sub", ["window", "rest"], "short"),
            node("Mod", ["short", "window"], "missing"),
            node("Unsqueeze", ["missing", "axis0"], "missing1"),
            node("Concat", ["zeros", "missing1", "zero1"], "pads", axis=0),
            node("Pad", ["x", "pads"], "pad"),
            node("Equal", ["missing", "i0"], "no_padding"),
            helper.make_node("If", ["no_padding"], ["chosen"], then_branch=then, else_branch=other),
            node("Unsqueeze", ["batch", "axis0"], "batch1"),
            node("Concat", ["batch1", "minus", "window1", "channels"], "target", axis=0),
            node("Reshape", ["chosen", "target"], "windows"),
            node("ConstantOfShape", ["window1"], "mask", value=numpy_helper.from_array(np.float32([0.5]))),
            node("Reshape", ["mask", "column"], "mask1"),
            node("Add", ["windows", "mask1"], "y"),
        ],
        [value("x", ["batch", "tokens", 6])],
        ["y"],
        {
            "i0": np.int64(0), "i1": np.int64(1), "window": np.int64(4), "axis0": np.int64([0]),
            "zeros": np.int64([0] * 4), "zero1": np.int64([0]),
            "minus": np.int64([-1]), "window1": np.int64([4]), "channels": np.int64([6]),
            "column": np.int64([4, 1]),
        },
    )  # fmt: skip


def parse(text: str) -> Any:
    """Parse and verify module text in MLIR 22 with the smartmem dialect."""
    from mlir import ir

    import smartmem_mlir.dialects  # noqa: F401 (registers the dialect)

    with ir.Context():
        module = ir.Module.parse(text)
        assert module.operation.verify()
        return str(module)


def test_module_specs_and_parameters(tmp_path: Path) -> None:
    imported = load(save(tmp_path, linear()))
    assert (imported.name, imported.kind) == ("model", "onnx")
    assert [str(s) for s in imported.inputs] == ["x: 4x64xf32"]
    assert [str(s) for s in imported.outputs] == ["y: 4x32xf32"]
    assert list(imported.parameters) == ["fc.weight", "b"]
    np.testing.assert_array_equal(imported.parameters["fc.weight"].load(), WEIGHT)
    np.testing.assert_array_equal(imported.parameters["b"].load(), BIAS)
    text = parse(imported.module)
    assert "func.func @main(%arg0: tensor<4x64xf32>) -> tensor<4x32xf32>" in text
    assert text.count("smartmem.parameter") == 2
    assert "linalg.matmul" in text


@pytest.mark.parametrize("name", ['we"ird', "back\\slash", "ünïcode/層.0", "with space", "a::b", "0", "%x", "@y"])
def test_any_weight_name_is_a_key(tmp_path: Path, name: str) -> None:
    from mlir import ir

    import smartmem_mlir.dialects  # noqa: F401 (registers the dialect)

    imported = load(save(tmp_path, linear(name)))
    assert set(imported.parameters) == {name, "b"}
    with ir.Context():
        module = ir.Module.parse(imported.module)
        entry = module.body.operations[0].regions[0].blocks[0]
        keys = [o.attributes["key"].value for o in entry.operations if o.operation.name == "smartmem.parameter"]
    assert keys == [name, "b"]


def test_torchscript_shape_arithmetic_disappears(tmp_path: Path) -> None:
    proto = torchscript_style()
    options = ImportOptions(dims={"batch": 2, "tokens": 10})
    folded = specialized(proto, options)
    assert [n.op_type for n in folded.graph.node] == ["Pad", "Relu", "Reshape", "Add"]
    feeds = {"x": RNG.standard_normal((2, 10, 6)).astype(np.float32)}
    np.testing.assert_array_equal(run_onnxruntime(folded, feeds)[0], run_onnxruntime(proto, feeds)[0])
    imported = load(save(tmp_path, proto), options)
    assert [str(s) for s in imported.outputs] == ["y: 2x3x4x6xf32"]
    assert "tensor<2x3x4x6xf32>" in parse(imported.module)


def test_other_sizes_take_the_other_branch() -> None:
    proto = torchscript_style()
    folded = specialized(proto, ImportOptions(dims={"batch": 1, "tokens": 8}))
    assert [n.op_type for n in folded.graph.node] == ["Pad", "Identity", "Reshape", "Add"]


def test_dim_by_input_and_axis(tmp_path: Path) -> None:
    proto = model([node("Relu", ["x"], "y")], [value("x", [None, 3])], ["y"])
    imported = load(save(tmp_path, proto), ImportOptions(dims={"x:0": 5}))
    assert imported.inputs[0].shape == (5, 3)


def test_inputs_and_outputs_keep_the_model_order(tmp_path: Path) -> None:
    proto = model(
        [node("Neg", ["b"], "second"), node("Add", ["a", "c"], "first")],
        [value("c", [2]), value("a", [2]), value("b", [3]), value("unused", [7])],
        ["first", "second", "b"],
    )
    imported = load(save(tmp_path, proto))
    assert [s.name for s in imported.inputs] == ["c", "a", "b", "unused"]
    assert [(s.name, s.shape) for s in imported.outputs] == [("first", (2,)), ("second", (3,)), ("b", (3,))]
    assert "-> (tensor<2xf32>, tensor<3xf32>, tensor<3xf32>)" in imported.module


def test_unsorted_nodes_are_sorted() -> None:
    proto = model([node("Neg", ["a"], "y"), node("Relu", ["x"], "a")], [value("x", [2])], ["y"])
    assert [n.op_type for n in specialized(proto).graph.node] == ["Relu", "Neg"]


def test_unused_unsupported_node_does_not_matter() -> None:
    proto = model([node("Relu", ["x"], "y"), node("Frobnicate", ["x"], "z")], [value("x", [2])], ["y"])
    assert [n.op_type for n in specialized(proto).graph.node] == ["Relu"]


def test_initializers_that_are_also_inputs_are_weights(tmp_path: Path) -> None:
    proto = linear()
    proto.graph.input.append(value("fc.weight", [64, 32]))
    proto.ir_version = 3
    imported = load(save(tmp_path, proto))
    assert [s.name for s in imported.inputs] == ["x"]
    assert "fc.weight" in imported.parameters


@pytest.mark.parametrize("raw", [True, False])
def test_float16_model(tmp_path: Path, raw: bool) -> None:
    half = WEIGHT.astype(np.float16)
    weight = (
        numpy_helper.from_array(half, "w") if raw else helper.make_tensor("w", TensorProto.FLOAT16, half.shape, half)
    )
    proto = model([node("MatMul", ["x", "w"], "y")], [value("x", [4, 64], TensorProto.FLOAT16)], ["y"])
    proto.graph.initializer.append(weight)
    imported = load(save(tmp_path, proto))
    assert imported.inputs[0].dtype == imported.outputs[0].dtype == "f16"
    np.testing.assert_array_equal(imported.parameters["w"].load(), half)
    parse(imported.module)


def test_float_data_instead_of_raw_data(tmp_path: Path) -> None:
    proto = linear()
    proto.graph.initializer[0].CopyFrom(
        helper.make_tensor("fc.weight", TensorProto.FLOAT, WEIGHT.shape, WEIGHT.ravel())
    )
    np.testing.assert_array_equal(load(save(tmp_path, proto)).parameters["fc.weight"].load(), WEIGHT)


def test_external_data(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(linear(), path, save_as_external_data=True, location="sub.bin", size_threshold=0)
    imported = load(path)
    np.testing.assert_array_equal(imported.parameters["fc.weight"].load(), WEIGHT)
    np.testing.assert_array_equal(imported.parameters["b"].load(), BIAS)


def test_local_functions_are_inlined(tmp_path: Path) -> None:
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    inner = helper.make_function("local", "Inner", ["a"], ["c"], [node("Neg", ["a"], "c")], opsets[:1])
    outer_nodes = [
        helper.make_node("Inner", ["a"], ["n"], domain="local"),
        helper.make_node("Add", ["a", "n"], ["c"]),
    ]
    outer = helper.make_function("local", "Outer", ["a"], ["c"], outer_nodes, opsets)
    graph = helper.make_graph(
        [helper.make_node("Outer", ["x"], ["m"], domain="local"), node("MatMul", ["m", "w"], "y")],
        "g",
        [value("x", [4, 64])],
        [value("y", [4, 32])],
        [numpy_helper.from_array(WEIGHT, "w")],
    )
    proto = helper.make_model(graph, opset_imports=opsets, functions=[inner, outer], ir_version=8)
    assert [n.op_type for n in specialized(proto).graph.node] == ["Neg", "Add", "MatMul"]
    np.testing.assert_array_equal(load(save(tmp_path, proto)).parameters["w"].load(), WEIGHT)


def test_loop_of_known_length_is_unrolled() -> None:
    body = helper.make_graph(
        [node("Add", ["v", "x"], "v2"), node("Identity", ["c"], "c2"), node("Neg", ["v2"], "seen")],
        "body",
        [value("i", [], TensorProto.INT64), value("c", [], TensorProto.BOOL), value("v", [2])],
        [value("c2", [], TensorProto.BOOL), value("v2", [2]), value("seen", [2])],
    )
    loop = helper.make_node("Loop", ["n", "", "x"], ["last", "all"], body=body)
    proto = model([loop], [value("x", [2])], ["last", "all"], {"n": np.int64(3)})
    unrolled = specialized(proto)
    assert "Loop" not in {n.op_type for n in unrolled.graph.node}
    feeds = random_feeds(proto)
    for found, expected in zip(run_onnxruntime(unrolled, feeds), run_onnxruntime(proto, feeds), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_large_folded_constant_becomes_a_parameter(tmp_path: Path) -> None:
    proto = model(
        [node("Expand", ["half", "shape"], "mask"), node("Add", ["x", "mask"], "y")],
        [value("x", [8, 8])],
        ["y"],
        {"half": np.float32(0.5), "shape": np.int64([8, 8])},
    )
    imported = load(save(tmp_path, proto))
    assert list(imported.parameters) == ["mask"]
    np.testing.assert_array_equal(imported.parameters["mask"].load(), np.full((8, 8), 0.5, np.float32))


def test_rejected_by_torch_mlir_lists_every_node(tmp_path: Path) -> None:
    proto = model(
        [
            helper.make_node("BitCast", ["x"], ["a"], name="one", to=TensorProto.INT32),
            helper.make_node("BitCast", ["x"], ["b"], name="two", to=TensorProto.INT32),
            node("Relu", ["x"], "c"),
        ],
        [value("x", [4])],
        ["a", "b", "c"],
        opset=26,
    )
    with pytest.raises(UnsupportedModelError, match=r"BitCast x2 \(one, two\)") as caught:
        load(save(tmp_path, proto))
    assert "\n" not in str(caught.value)


def test_memory_stays_below_the_weights(tmp_path: Path) -> None:
    """The importing process never holds the weights, inside the file or beside it."""
    shape = (4096, 8192)  # 128 MiB of f32
    proto = model(
        [node("MatMul", ["x", "w"], "y")], [value("x", [1, shape[0]])], ["y"], {"w": np.zeros(shape, np.float32)}
    )
    path = save(tmp_path, proto)
    script = (
        "import sys; from smartmem_mlir.ingress import load; m = load(sys.argv[1]);"
        # Not ru_maxrss, which a process inherits from the one that started it.
        "peak = next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'));"
        "print(peak, m.parameters['w'].spec.nbytes)"
    )
    command = [sys.executable, "-c", script, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=child_environment())
    peak_kib, nbytes = map(int, done.stdout.split())
    assert nbytes == 4 * shape[0] * shape[1]
    assert peak_kib * 1024 < nbytes


def test_float_type_conversion(tmp_path: Path) -> None:
    proto = model(
        [
            node("MatMul", ["x", "w"], "m"),
            node("Cast", ["m"], "wide", to=TensorProto.DOUBLE),
            node("Cast", ["wide"], "back", to=TensorProto.FLOAT),
            node("Add", ["back", "low"], "masked"),
            node("Softmax", ["masked"], "y", axis=-1),
            node("Shape", ["m"], "n"),
        ],
        [value("x", [4, 64])],
        ["y", "n"],
        {"w": WEIGHT, "low": np.full(32, -3.0e38, np.float32)},
    )
    imported = load(save(tmp_path, proto), ImportOptions(dtype="f16"))
    assert [s.dtype for s in imported.inputs] == ["f16"]
    assert [s.dtype for s in imported.outputs] == ["f16", "i64"]
    np.testing.assert_array_equal(imported.parameters["w"].load(), WEIGHT.astype(np.float16))
    assert np.isfinite(imported.parameters["low"].load()).all()
    assert "f64" not in imported.module
    parse(imported.module)


def test_resize_scales_stay_f32_in_f16(tmp_path: Path) -> None:
    resize = helper.make_node("Resize", ["x", "", "s"], ["y"], name="up", mode="linear")
    proto = model([resize], [value("x", [1, 1, 3, 3])], ["y"], {"s": np.float32([1, 1, 2, 2])})
    imported = load(save(tmp_path, proto), ImportOptions(dtype="f16"))
    assert str(imported.outputs[0]) == "y: 1x1x6x6xf16"
