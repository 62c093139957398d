"""Elementary functions of kernels are as exact as they say, for every kind of argument."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import iree.runtime as rt
import numpy as np
import pytest
from mlir import ir
from mlir.dialects import vector
from numpy.typing import NDArray

from smartmem_mlir.ir import make_context
from smartmem_mlir.iree.compiler import CompilerOptions, run_iree_compile
from smartmem_mlir.iree.device_target import compile_flags
from smartmem_mlir.kernels.cpu.lanes import Part, index, load, loop
from smartmem_mlir.kernels.executable import add_executable, dispatch
from smartmem_mlir.kernels.functions import erf, exp, exp_of_nonpositive, tanh
from smartmem_mlir.kernels.spirv.vectors import nearest_half
from smartmem_mlir.targets import load_target

COUNT, LANES = 1 << 17, 16
FUNCTIONS: dict[str, Callable[[ir.Value], ir.Value]] = {
    "exp": exp,
    "exp_of_nonpositive": exp_of_nonpositive,
    "erf": erf,
    "tanh": tanh,
    "nearest_half": nearest_half,
}
EXACT: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "exp": np.exp,
    "exp_of_nonpositive": np.exp,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "tanh": np.tanh,
}

Array = NDArray[np.float32]


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Array], Array]:
    """Each function as a kernel over a vector of COUNT elements."""
    folder: Path = tmp_path_factory.mktemp("functions")
    with make_context(allow_unregistered_dialects=True), ir.Location.unknown():
        type_ = ir.RankedTensorType.get([COUNT], ir.F32Type.get())
        text = [f"func.func @{name}(%x: {type_}) -> {type_} {{\n  return %x : {type_}\n}}" for name in FUNCTIONS]
        module = ir.Module.parse("\n".join(text))
        for op, (name, function) in zip(list(module.body.operations), FUNCTIONS.items(), strict=True):
            block = op.operation.regions[0].blocks[0]
            add_executable(module.body, f"kernel_{name}", [type_, type_], (1, 1), _kernel(function))
            with ir.InsertionPoint(block.operations[0]):
                result = dispatch(f"kernel_{name}", [block.arguments[0]], type_)
            block.operations[1].operands[0] = result
        (folder / "functions.mlir").write_text(str(module))
    flags = compile_flags(load_target("cpu"), None)
    run_iree_compile(folder / "functions.mlir", folder / "functions.vmfb", flags, CompilerOptions())
    config = rt.Config(device=rt.get_device("local-sync"))
    loaded = rt.load_vm_module(
        rt.VmModule.copy_buffer(config.vm_instance, (folder / "functions.vmfb").read_bytes()), config
    )

    def run(name: str, values: Array) -> Array:
        padded = np.zeros(COUNT, dtype=np.float32)
        padded[: len(values)] = values
        return np.asarray(loaded[name](padded))[: len(values)]

    return run


def _kernel(function: Callable[[ir.Value], ir.Value]) -> Callable[..., None]:
    def body(buffers: list[ir.Value], _: list[ir.Value]) -> None:
        def step(at: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            vector.StoreOp(function(load(buffers[0], at, Part(0, LANES, LANES))), buffers[1], [at])
            return []

        loop(index(0), index(COUNT), LANES, [], step)

    return body


def units_off(found: Array, exact: NDArray[np.float64]) -> float:
    """Greatest error in units of the last place of the exact result, which is normal."""
    return float(np.max(np.abs(found - exact) / np.spacing(np.abs(exact).astype(np.float32))))


def every(low: float, high: float) -> Array:
    """COUNT values from low to high, evenly spaced as bit patterns and as numbers."""
    half = COUNT // 2
    evenly = np.linspace(low, high, half, dtype=np.float64).astype(np.float32)
    magnitude = max(abs(low), abs(high))
    bits = np.linspace(0, np.float32(magnitude).view(np.int32), half).astype(np.int32).view(np.float32)
    return np.concatenate([evenly, -bits if abs(low) == magnitude else bits])


@pytest.mark.parametrize(
    ("name", "low", "high", "units"),
    [
        ("exp", -87.33, 88.72, 1.0),
        ("exp_of_nonpositive", -87.33, 0.0, 1.0),
        ("erf", -5.0, 5.0, 6.0),
        ("tanh", -10.0, 10.0, 6.0),
    ],
)
def test_error(call: Callable[[str, Array], Array], name: str, low: float, high: float, units: float) -> None:
    values = every(low, high)
    exact = EXACT[name](values.astype(np.float64))
    # Subnormal arguments and results are flushed.
    normal = np.minimum(np.abs(exact), np.abs(values) + (values == 0)) >= np.finfo(np.float32).tiny
    assert units_off(call(name, values)[normal], exact[normal]) < units


def test_exp_at_the_ends(call: Callable[[str, Array], Array]) -> None:
    values = np.array([-np.inf, -1000.0, -105.0, 0.0, -0.0, 89.0, 1000.0, np.inf, np.nan], dtype=np.float32)
    expected = [0.0, 0.0, 0.0, 1.0, 1.0, np.inf, np.inf, np.inf, np.nan]
    np.testing.assert_array_equal(call("exp", values), np.array(expected, dtype=np.float32))


def test_exp_of_nonpositive_at_the_ends(call: Callable[[str, Array], Array]) -> None:
    values = np.array([-np.inf, -1e30, -1000.0, -87.5, -0.0, 0.0, np.nan], dtype=np.float32)
    expected = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 1.0, np.nan], dtype=np.float32)
    np.testing.assert_array_equal(call("exp_of_nonpositive", values), expected)


def test_the_nearest_half_is_numpys(call: Callable[[str, Array], Array]) -> None:
    """Ties, carries into the exponent, both signs, what is no number; numpy rounds to nearest, ties to even."""
    rng = np.random.default_rng(0)
    halves = np.arange(1 << 15, dtype=np.uint16).view(np.float16).astype(np.float32)
    normal = halves[np.isfinite(halves) & (halves >= 2.0**-14)]
    ties = ((normal[:-1].astype(np.float64) + normal[1:]) / 2).astype(np.float32)
    beside = [np.nextafter(ties, np.float32(edge)) for edge in (0, 1e6)]
    random = (rng.standard_normal(5000) * 10.0 ** rng.uniform(-4, 4, 5000)).astype(np.float32)
    random = random[(np.abs(random) >= 2.0**-14) & (np.abs(random) < 65504)]
    special = np.array([np.inf, np.nan, 0.0], np.float32)
    for values in (normal, ties, *beside, random, special):
        for signed in (values, -values):
            expected = signed.astype(np.float16).astype(np.float32)
            np.testing.assert_array_equal(call("nearest_half", signed), expected)
    quiet = np.array([0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001], np.uint32).view(np.float32)
    assert np.isnan(call("nearest_half", quiet)).all()


def test_small_numbers_keep_what_half_has(call: Callable[[str, Array], Array]) -> None:
    """Below 2^-14 f16 has fewer digits: the device drops those. What it gets is half a digit away."""
    values = np.random.default_rng(1).uniform(-(2.0**-14), 2.0**-14, 5000).astype(np.float32)
    assert np.abs(call("nearest_half", values) - values).max() <= 2.0**-26
