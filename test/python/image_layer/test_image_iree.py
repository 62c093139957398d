"""Under IREE: memory reuse, many invocations, threads, the canary, and programs that must fail loudly."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from image_cases import PACK, TYPE, UNPACK, VALUE, mistakes, reuse_program
from image_programs import Function, Step, compile_module, compile_program, evaluate, random_tensor
from image_runner import Call, Outcome, Runner

CANARY = Path(__file__).parents[3] / "runtime" / "image_layer" / "canary"


def assert_ran(outcome: Outcome) -> None:
    """Ran, and the validation layer had nothing to say."""
    assert outcome.code == 0, outcome.text
    assert outcome.validation_errors() == []


# Memory reuse ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def reuse(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    """The module of reuse_program and what it computes."""
    function, expected = reuse_program()
    return compile_program(tmp_path_factory.mktemp("reuse"), [function]), expected


def test_memory_of_dead_tensors_is_reused(runner: Runner, reuse: tuple[Path, np.ndarray]) -> None:
    module, expected = reuse
    outcome, outputs, report = runner.work(module, [Call("f", [VALUE], ["float32"])], repeat=3)
    assert_ran(outcome)
    assert report["mismatches"] == []
    np.testing.assert_array_equal(outputs[0][0], expected)
    (statistics,) = outcome.statistics
    assert statistics["images_evicted"] > 0
    assert statistics["images_recycled"] > 0


def test_300_invocations_take_no_more_memory_than_30(runner: Runner, reuse: tuple[Path, np.ndarray]) -> None:
    module, expected = reuse
    call = Call("f", [VALUE], ["float32"])
    short, _, _ = runner.work(module, [call], repeat=30, validation=False)
    long, outputs, report = runner.work(module, [call], repeat=300, validation=False)
    assert long.code == short.code == 0, long.text + short.text
    assert report["mismatches"] == []
    np.testing.assert_array_equal(outputs[0][0], expected)
    assert long.statistics[0]["image_bytes_peak"] == short.statistics[0]["image_bytes_peak"]
    assert long.statistics[0]["images_created"] == short.statistics[0]["images_created"]
    resident = report["resident"]
    assert resident[-1] - resident[30] < 4 << 20, resident[::30]


def test_two_threads(runner: Runner, reuse: tuple[Path, np.ndarray]) -> None:
    module, expected = reuse
    outcome, outputs, report = runner.work(module, [Call("f", [VALUE], ["float32"])], repeat=20, threads=2)
    assert_ran(outcome)
    assert report["mismatches"] == []
    np.testing.assert_array_equal(outputs[0][0], expected)


def test_100_dynamic_shapes_stay_in_a_small_pool(runner: Runner, tmp_path: Path) -> None:
    """Extents as push constants of one module; dead images of old shapes must go."""
    kernels = [replace(kernel, extents_in_push_constants=True) for kernel in (PACK, UNPACK)]
    function = Function("f", {"in": TYPE}, [Step("a", kernels[0], ("in",)), Step("out", kernels[1], ("a",))])
    compile_program(tmp_path, [function])  # Only for its kernels: its text has the shapes filled in.
    source = tmp_path / "dynamic.mlir"
    text = (tmp_path / "program.mlir").read_text().replace(TYPE, "tensor<1x?x?x4xf32>")
    text = text.replace(
        "{\n  %f_0_push0",
        "{\n  %c1 = arith.constant 1 : index\n  %c2 = arith.constant 2 : index\n"
        "  %height = tensor.dim %in, %c1 : tensor<1x?x?x4xf32>\n  %width = tensor.dim %in, %c2 : tensor<1x?x?x4xf32>\n"
        "  %h32 = arith.index_cast %height : index to i32\n  %w32 = arith.index_cast %width : index to i32\n"
        "  %f_0_push0",
        1,
    )
    for kernel in (0, 1):
        text = text.replace(f"%f_{kernel}_push0 = arith.constant 16 : i32\n", "\n")
        text = text.replace(f"%f_{kernel}_push1 = arith.constant 8 : i32\n", "\n")
        text = text.replace(f"%f_{kernel}_push0, %f_{kernel}_push1", "%w32, %h32")
    text = text.replace("-> tensor<1x?x?x4xf32>\n", "-> tensor<1x?x?x4xf32>{%height, %width}\n")
    operands = ") : (i32, i32, i32, tensor<1x?x?x4xf32>"
    text = text.replace(f"{operands})", f"{operands}{{%height, %width}})")
    text = text.replace("%count_x = arith.constant 2 : index", "%count_x = arith.constant 8 : index")
    text = text.replace("%count_y = arith.constant 1 : index", "%count_y = arith.constant 8 : index")
    source.write_text(text)
    module = compile_module(source, tmp_path / "dynamic.vmfb")
    shapes = [(1 + 7 * n % 61, 1 + 5 * n % 53) for n in range(100)]
    calls, expected = [], []
    for width, height in shapes:
        sized = [replace(kernel, width=width, height=height) for kernel in kernels]
        value = random_tensor(sized[0], width)
        calls.append(Call("f", [value], ["float32"]))
        expected.append(evaluate(sized[1], evaluate(sized[0], value)))
    environment = {"SMARTMEM_IMAGE_POOL_BYTES": "65536"}
    outcome, outputs, _ = runner.work(module, calls, environment=environment, validation=False)
    assert outcome.code == 0, outcome.text
    for actual, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(actual[0], wanted)
    (statistics,) = outcome.statistics
    assert statistics["pool_bytes"] <= 65536
    assert statistics["image_bytes_peak"] < 1 << 20


# The canary -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def canary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the two compiled canaries."""
    directory = tmp_path_factory.mktemp("canary")
    for name in ("version", "mirror"):
        compile_module(CANARY / f"{name}.mlir", directory / f"{name}.vmfb")
    return directory


def test_canary_is_generated(tools_on_path: None) -> None:
    subprocess.run([sys.executable, CANARY / "generate.py", "--check"], check=True)


@pytest.mark.parametrize(("layer", "version"), [(False, 0), (True, 1)])
def test_canary_tells_whether_the_layer_is_there(runner: Runner, canary: Path, layer: bool, version: int) -> None:
    """A legal program on either side: the validation layer is quiet, no driver crashes."""
    outcome, outputs = runner.invoke(canary / "version.vmfb", "layer_version", [], layer=layer)
    assert_ran(outcome)
    np.testing.assert_array_equal(outputs[0], [version])


def test_canary_goes_through_an_image(runner: Runner, canary: Path) -> None:
    value = np.random.default_rng(0).uniform(-1, 1, (4, 8, 4)).astype(np.float32)
    outcome, outputs = runner.invoke(canary / "mirror.vmfb", "mirror", [value])
    assert_ran(outcome)
    np.testing.assert_array_equal(outputs[0], value[::-1, ::-1])
    assert outcome.statistics[0]["dispatches_redirected"] == 2


# Programs that must fail ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The module of all mistakes."""
    return compile_program(tmp_path_factory.mktemp("programs"), mistakes())


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("never_written", "kernel 'unpack', binding 0 reads"),
        ("written_as_buffer", "which holds no tensor"),
        ("read_as_buffer", "kernel 'copy', binding 0 reads"),
        ("other_shape", "but those bytes are held by a 16x8 rgba32f image"),
        ("too_large", "a 32x8 rgba32f image takes 4096 bytes and the tensor has 2048"),
        ("too_small", "a 15x8 rgba32f image takes 1920 bytes and the tensor has 2048"),
        ("sliced", "vkCmdCopyBuffer reads"),
    ],
)
def test_mistakes_fail(runner: Runner, programs: Path, function: str, message: str) -> None:
    outcome, outputs = runner.invoke(programs, function, [VALUE])
    assert outcome.code != 0
    assert outputs == []
    assert "smartmem image layer: error: " in outcome.text
    assert message in outcome.text


def test_returning_an_image_tensor_fails(runner: Runner, programs: Path) -> None:
    outcome, _, _ = runner.work(programs, [Call("returned", [VALUE], ["float32", "float32"])])
    assert outcome.code != 0
    assert "vkCmdCopyBuffer reads" in outcome.text
    assert "the bytes in the buffer are stale" in outcome.text


def test_a_mistake_does_not_spoil_the_device(runner: Runner, programs: Path) -> None:
    outcome, outputs = runner.invoke(programs, "good", [VALUE])
    assert_ran(outcome)
    np.testing.assert_array_equal(outputs[0], evaluate(UNPACK, evaluate(PACK, VALUE)))


@pytest.mark.parametrize("variable", ["SMARTMEM_IMAGE_LIMITS", "SMARTMEM_IMAGE_MAX_BYTES"])
def test_exceeded_limits_fail(runner: Runner, programs: Path, variable: str) -> None:
    value = {"SMARTMEM_IMAGE_LIMITS": "maxImageDimension2D=15", "SMARTMEM_IMAGE_MAX_BYTES": "1000"}[variable]
    outcome, outputs = runner.invoke(programs, "good", [VALUE], environment={variable: value})
    assert outcome.code != 0
    assert outputs == []
    assert ("maxImageDimension2D = 15" if "LIMITS" in variable else "exceeds SMARTMEM_IMAGE_MAX_BYTES") in outcome.text


@pytest.mark.parametrize("order", [("images", "addresses"), ("addresses", "images")])
def test_device_addresses_are_refused_beside_images(
    runner: Runner, programs: Path, tmp_path: Path, order: tuple[str, str]
) -> None:
    """A kernel that writes through addresses could overwrite any tensor unseen. Both modules in one context."""
    if runner.driver.name == "swiftshader" and order[0] == "addresses":
        pytest.skip("SwiftShader crashes on the 64-bit integers of IREE's kernels with device addresses")
    source = tmp_path / "addresses.mlir"
    source.write_text(
        "module @addresses { func.func @g(%a: tensor<64xf32>) -> tensor<64xf32> {\n"
        "  %r = math.absf %a : tensor<64xf32>\n  return %r : tensor<64xf32>\n} }\n"
    )
    addresses = compile_module(source, tmp_path / "addresses.vmfb", "--iree-vulkan-dispatch-abi=bda")
    modules = {"images": programs, "addresses": addresses}
    command = ["iree-run-module", "--device=vulkan", *(f"--module={modules[name]}" for name in order)]
    function, shape = ("g", "64xf32") if order[1] == "addresses" else ("good", "1x8x16x4xf32")
    outcome = runner.run([*command, f"--function={function}", f"--input={shape}=1"])
    assert outcome.code != 0
    assert "through buffer device addresses" in outcome.text
    assert "--vulkan_dispatch_abi=descriptor" in outcome.text


def test_without_the_layer_images_do_not_work(runner: Runner, programs: Path) -> None:
    """Why the canary is needed: lavapipe crashes, SwiftShader quietly returns something else."""
    outcome, outputs = runner.invoke(programs, "good", [VALUE], layer=False, validation=False)
    expected = evaluate(UNPACK, evaluate(PACK, VALUE))
    assert outcome.code != 0 or not np.array_equal(outputs[0], expected)
