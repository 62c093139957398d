"""Convolutions by minimal filtering: the matrices, the kernels against ONNX Runtime, and which they are used for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import yaml
from onnx import TensorProto, helper, numpy_helper

import smartmem_mlir as sm
from smartmem_mlir.kernels.winograd import minimal_filtering
from smartmem_mlir.report.directory import read_directory
from smartmem_mlir.targets import load_pipeline

RANDOM = np.random.default_rng(7)
VECTORS = {"neon": (4, 32), "avx2": (8, 16), "avx512": (16, 32)}
# Image, channels in and out, what follows, groups: tiles that fit, that must be moved back along one or both axes,
# vectors and panels that are full or not, several images.
CASES: dict[str, tuple[tuple[int, int, int], tuple[int, int], str, int]] = {
    "fits": ((1, 64, 48), (16, 64), "", 1),
    "moved": ((1, 30, 30), (64, 64), "relu", 1),
    "both_odd": ((1, 31, 29), (40, 77), "residual", 1),
    "one_row": ((1, 4, 241), (52, 64), "relu", 1),
    "images": ((3, 19, 20), (48, 64), "sigmoid", 1),
    "no_border": ((1, 39, 42), (33, 37), "valid", 1),
    "chain": ((1, 33, 34), (40, 40), "chain", 1),
    # Filters of all channels do not fit into the cache at a time, and the last part has fewer.
    "deep": ((1, 17, 16), (149, 64), "relu", 1),
    # In groups: of a vector and a half, of several panels, of vectors that are masked, all of several images.
    "groups_of_24": ((1, 22, 21), (72, 72), "residual", 3),
    "groups_of_panels": ((1, 24, 24), (34, 144), "relu", 2),
    "groups_of_19": ((2, 15, 16), (57, 57), "sigmoid", 3),
}


def weights(*shape: int) -> np.ndarray:
    return (RANDOM.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


class Builder:
    """An ONNX graph of independent branches."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.weights: list[onnx.TensorProto] = []

    def conv(self, x: str, name: str, channels: tuple[int, int], size: int, **attributes: object) -> str:
        depth, out = channels
        self.weights.append(numpy_helper.from_array(weights(out, depth, size, size), f"{name}_w"))
        self.weights.append(numpy_helper.from_array(RANDOM.standard_normal(out).astype(np.float32), f"{name}_b"))
        pads = [size // 2] * 4
        return self.node("Conv", [x, f"{name}_w", f"{name}_b"], name, **{"pads": pads, **attributes})

    def node(self, kind: str, inputs: list[str], name: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def branch(self, name: str, image: tuple[int, int, int], channels: tuple[int, int], then: str, groups: int) -> None:
        count, height, width = image
        depth, out = channels
        shape = [count, 4, height, width]
        self.inputs.append(helper.make_tensor_value_info(f"{name}_x", TensorProto.FLOAT, shape))
        # Channels last, which is how the caller does not store them.
        x = self.conv(f"{name}_x", f"{name}_in", (4, depth), 1)
        pads = [0] * 4 if then == "valid" else [1] * 4
        y = self.conv(x, f"{name}_y", (depth // groups, out), 3, pads=pads, group=groups)
        if then in ("relu", "sigmoid"):
            y = self.node(then.capitalize(), [y], f"{name}_after")
        if then == "residual":
            y = self.node("Add", [y, self.conv(x, f"{name}_other", channels, 1)], f"{name}_after")
        if then == "chain":
            y = self.conv(self.node("Relu", [y], f"{name}_r"), f"{name}_z", (out, out), 3)
        less = 2 if then == "valid" else 0
        result = [count, out, height - less, width - less]
        self.outputs.append(helper.make_tensor_value_info(y, TensorProto.FLOAT, result))

    def save(self, path: Path) -> Path:
        graph = helper.make_graph(self.nodes, "convolutions", self.inputs, self.outputs, self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
        return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    builder = Builder()
    for name, case in CASES.items():
        builder.branch(name, *case)
    return builder.save(tmp_path_factory.mktemp("winograd") / "convolutions.onnx")


def pipeline(folder: Path, **options: int) -> Path:
    """The CPU pipeline with options of the pass that makes kernels."""
    text = load_pipeline("cpu").model_dump(mode="json", by_alias=True)
    for position, step in enumerate(text["passes"]):
        name = step if isinstance(step, str) else step["pass"]
        if name == "smartmem-lower-groups-to-cpu":
            text["passes"][position] = {"pass": name, "options": options}
    path = folder / "pipeline.yaml"
    path.write_text(yaml.safe_dump(text | {"name": "filtering"}))
    return path


def compile_with(model: Path, folder: Path, **options: int) -> sm.CompiledModel:
    return sm.compile(model, folder / "out", target="cpu", pipeline=str(pipeline(folder, **options)))


def filtered(compiled: sm.CompiledModel) -> int:
    """Convolutions that minimal filtering computes."""
    return sum(kernel.name.count("winograd") * kernel.calls for kernel in read_directory(compiled.path).flow.entries)


@pytest.fixture(scope="module")
def compiled_for(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], sm.CompiledModel]:
    """The model compiled for vectors of a name."""

    @cache
    def compile_(vectors: str) -> sm.CompiledModel:
        lanes, registers = VECTORS[vectors]
        return compile_with(model, tmp_path_factory.mktemp(vectors), lanes=lanes, registers=registers)

    return compile_


@pytest.mark.parametrize("vectors", VECTORS)
def test_the_result_is_onnx_runtimes(
    model: Path, compiled_for: Callable[[str], sm.CompiledModel], vectors: str
) -> None:
    compiled = compiled_for(vectors)
    entries = read_directory(compiled.path).flow.entries
    assert filtered(compiled) == len(CASES) + 1, [kernel.name for kernel in entries]
    # Scratch memory is no traffic between kernels, and nothing else is scratch.
    assert all((kernel.scratch_bytes > 0) == ("winograd" in kernel.name) for kernel in entries)
    alone = next(kernel for kernel in entries if kernel.name.startswith("winograd_1x64x48x64x"))
    assert alone.written_bytes == 4 * 64 * 48 * 64
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    feeds = {x.name: RANDOM.standard_normal(x.shape).astype(np.float32) for x in session.get_inputs()}
    wanted = session.run(None, feeds)
    outputs = compiled.run(list(feeds.values()))
    for (name, values), expected in zip(outputs.items(), wanted, strict=True):
        error = np.linalg.norm(values - expected) / np.linalg.norm(expected)
        assert error < 5e-6, (name, error)
        # Also where a tile is moved back, whose elements are few.
        assert np.abs(values - expected).max() < 1e-4, name
    again = compiled.run(list(feeds.values()))
    assert all(np.array_equal(again[name], values) for name, values in outputs.items())


@pytest.mark.parametrize(("outputs", "taps"), [(1, 3), (2, 3), (3, 3), (4, 3), (2, 5), (3, 2)])
def test_the_matrices_filter(outputs: int, taps: int) -> None:
    found = minimal_filtering(outputs, taps)
    assert found.filters()
    wrong = [list(row) for row in found.data]
    wrong[1][1] += Fraction(1, 1000)
    assert not dataclasses.replace(found, data=tuple(map(tuple, wrong))).filters()


def test_every_claim_is_proved(compiled_for: Callable[[str], sm.CompiledModel]) -> None:
    assert sm.check(compiled_for("avx2").path).claims > 50


def test_weights_do_not_grow(model: Path, compiled_for: Callable[[str], sm.CompiledModel]) -> None:
    source = sum(numpy_helper.to_array(weight).nbytes for weight in onnx.load(model).graph.initializer)
    # Beside the weights the archive holds names and padding, also that of panels.
    assert (compiled_for("avx2").path / "params.irpa").stat().st_size < source * 1.06


def test_none_is_filtered_where_that_is_not_wanted(model: Path, tmp_path: Path) -> None:
    assert not filtered(compile_with(model, tmp_path, lanes=8, registers=16, filtering=False))


def test_what_does_not_fit_is_computed_as_it_is(tmp_path: Path) -> None:
    builder = Builder()
    builder.inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 49, 49]))
    x = builder.conv("x", "wide", (4, 32), 1)
    # Of groups, 8 channels each are too few, 16 are not.
    variants = ({"strides": [2, 2]}, {"dilations": [2, 2], "pads": [2] * 4}, {"group": 1}, {"group": 4}, {"group": 2})
    for number, attributes in enumerate(variants):
        y = builder.conv(x, f"y{number}", (32 // attributes.get("group", 1), 32), 3, **attributes)
        size = 25 if number == 0 else 49
        builder.outputs.append(helper.make_tensor_value_info(y, TensorProto.FLOAT, [1, 32, size, size]))
    compiled = compile_with(builder.save(tmp_path / "m.onnx"), tmp_path, lanes=8, registers=16)
    assert filtered(compiled) == 2
    assert compiled.verify().matches
