"""Tensors that flow through images give what NumPy gives, for every format, shape and kind of binding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from image_cases import FORMATS, SHAPES, expect, kernel, network
from image_kernels import Kernel, Operand
from image_programs import Array, Function, Native, Step, compile_program, evaluate, random_tensor, shape, tensor_type
from image_runner import Call, Runner

TYPES = {"rgba32f": "float32", "rgba16f": "float16", "rgba32ui": "uint32"}


def assert_close(actual: Array, expected: Array, stores: int) -> None:
    """Equal, or in f16 within one unit in the last place per store: lavapipe truncates where it should round."""
    assert actual.shape == expected.shape
    if actual.dtype == np.float16:
        # Values passed on the way are at most four times the result's magnitude here, plus the constants.
        tolerance = stores * np.spacing(np.maximum(np.abs(expected.astype(np.float32)) * 4, 16).astype(np.float16))
        assert np.all(np.abs(actual.astype(np.float32) - expected.astype(np.float32)) <= tolerance.astype(np.float32))
    else:
        np.testing.assert_array_equal(actual, expected)


@pytest.fixture(scope="session", params=FORMATS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Function]]:
    """All shapes in one module, which also makes them share pooled memory."""
    functions = [network(index, dim, (w, h, d), request.param) for index, (dim, w, h, d) in enumerate(SHAPES)]
    return compile_program(tmp_path_factory.mktemp(request.param), functions), functions


def test_networks_match_numpy(runner: Runner, program: tuple[Path, list[Function]]) -> None:
    module, functions = program
    inputs = [random_tensor(function.kernels()[0], seed) for seed, function in enumerate(functions)]
    type_ = TYPES[functions[0].kernels()[0].format]
    calls = [Call(function.name, [value], [type_, type_]) for function, value in zip(functions, inputs, strict=True)]
    outcome, outputs, report = runner.work(module, calls, repeat=2)
    assert outcome.code == 0, outcome.text
    assert outcome.validation_errors() == []
    assert report["mismatches"] == []
    for function, value, actual in zip(functions, inputs, outputs, strict=True):
        for result, expected in zip(actual, expect(function, value), strict=True):
            assert_close(result, expected, stores=4)
    (statistics,) = outcome.statistics
    assert statistics["dispatches_redirected"] == 2 * 6 * len(functions)
    assert statistics["errors"] == 0


def test_image_tensors_beside_kernels_of_iree(runner: Runner, tmp_path: Path) -> None:
    """Kernels that IREE generates bind whole allocations around image tensors; those must stay alive."""
    pack = kernel("2D", (16, 8, 1), "rgba32f", ("buffer",), "image", push=False, scale=2, bias=1, name="pack")
    unpack = kernel("2D", (16, 8, 1), "rgba32f", ("sampled",), "buffer", push=False, mirror=True, name="unpack")
    tensor = tensor_type(pack)
    identity = "affine_map<(a, b, c, d) -> (a, b, c, d)>"
    parallel = ", ".join(['"parallel"'] * 4)

    def native(result: str, source: str, op: str) -> Native:
        return Native(
            result,
            f"%{result} = linalg.generic {{indexing_maps = [{identity}, {identity}], iterator_types = [{parallel}]}} "
            f"ins(%{source} : {tensor}) outs(%{source} : {tensor}) {{ ^bb0(%e: f32, %o: f32): "
            f"%each = arith.{op} %e, %e : f32 linalg.yield %each : f32 }} -> {tensor}",
            tensor,
        )

    function = Function(
        "f",
        {"in": tensor},
        [
            native("u", "in", "addf"),
            Step("i", pack, ("u",)),
            Step("p", pack, ("in",)),
            Step("q", unpack, ("p",)),
            native("v", "q", "mulf"),
            Step("w", unpack, ("i",)),
            native("z", "w", "mulf"),
            Step("j", pack, ("v",)),
            Step("k", unpack, ("j",)),
        ],
        ("z", "k"),
    )
    module = compile_program(tmp_path, [function])
    value = random_tensor(pack)
    outcome, outputs, report = runner.work(module, [Call("f", [value], ["float32", "float32"])], repeat=3)
    assert outcome.code == 0, outcome.text
    assert outcome.validation_errors() == []
    assert report["mismatches"] == []
    through = evaluate(unpack, evaluate(pack, value + value))
    squared = evaluate(unpack, evaluate(pack, value)) ** 2
    np.testing.assert_allclose(outputs[0][0], through * through, rtol=1e-6)
    np.testing.assert_allclose(outputs[0][1], evaluate(unpack, evaluate(pack, squared)), rtol=1e-6)


def test_offset_addresses_a_part_of_the_binding(runner: Runner, tmp_path: Path) -> None:
    """Two tensors in one binding, told apart by the offset: in the metadata as a number or as a push constant."""
    whole = kernel("2D", (8, 8, 1), "rgba32f", ("buffer",), "buffer", push=False, name="whole")
    inputs = {"in": tensor_type(whole)}
    # The lower half of an 8 x 8 tensor as an 8 x 4 image; nobody has written it as one.
    lower = Kernel(
        (Operand("sampled", offset="512"),), Operand("buffer"), 8, 4, format="rgba32f", name="lower", mirror=True
    )
    texels = Kernel((Operand("uniform_texel", offset="512"),), Operand("buffer"), 8, 4, name="texels", mirror=True)
    functions = [
        Function("image", inputs, [Step("t", whole, ("in",)), Step("out", lower, ("t",))]),
        Function("texel", inputs, [Step("t", whole, ("in",)), Step("out", texels, ("t",))]),
    ]
    module = compile_program(tmp_path, functions)
    value = random_tensor(whole)
    outcome, outputs = runner.invoke(module, "texel", [value])
    assert outcome.code == 0, outcome.text
    assert outcome.validation_errors() == []
    half = value.reshape(8, 8, 4)[4:].reshape(shape(texels))
    np.testing.assert_array_equal(outputs[0], evaluate(texels, half))
    outcome, outputs = runner.invoke(module, "image", [value])
    assert outcome.code != 0
    assert outputs == []
    assert "no kernel has written" in outcome.text
