"""Kernels whose threads all do the same: found, repaired, and until then taken for what they are."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from smartmem_mlir.iree.assumptions import VulkanAssumptions
from smartmem_mlir.iree.build import BuiltModule, build
from smartmem_mlir.iree.compiler import CompilerOptions
from smartmem_mlir.iree.device import resolve_device
from smartmem_mlir.iree.lower import emit_iree
from smartmem_mlir.iree.runtime import LoadedModule
from smartmem_mlir.iree.shaders import Repair, find_modules, needs_of, repair_vmfb
from smartmem_mlir.iree.shaders.barriers import races
from smartmem_mlir.iree.shaders.module import parse_module
from smartmem_mlir.iree.shaders.threads import redundant_axes, thread_axes
from smartmem_mlir.signature import TensorSpec
from smartmem_mlir.targets import load_target

# IREE tiles the outer 64 by a workgroup of 1 x 1 x 64 and then does not distribute it: every thread sums all rows.
SOFTMAX = """
func.func @main(%x: tensor<64x3x7x49xf32>) -> tensor<64x3x7x49xf32> {
  %e = tensor.empty() : tensor<64x3x7x49xf32>
  %r = linalg.softmax dimension(3) ins(%x : tensor<64x3x7x49xf32>) outs(%e : tensor<64x3x7x49xf32>)
      -> tensor<64x3x7x49xf32>
  return %r : tensor<64x3x7x49xf32>
}
"""
SPEC = TensorSpec("x", (64, 3, 7, 49), "f32")


# The convolution's loops run over (h, w, channels), those of the fill and the bias over (channels, h, w): IREE gives
# an element of the tile between them, in shared memory, to different threads.
DEPTHWISE = """
func.func @main(%x: tensor<1x{channels}x{padded}x{padded}xf32>, %k: tensor<{channels}x3x3xf32>,
    %b: tensor<{channels}xf32>) -> tensor<1x{channels}x{size}x{size}xf32> {{
  %e = tensor.empty() : tensor<1x{channels}x{size}x{size}xf32>
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x{channels}x{size}x{size}xf32>)
      -> tensor<1x{channels}x{size}x{size}xf32>
  %c = linalg.depthwise_conv_2d_nchw_chw {{dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}}
      ins(%x, %k : tensor<1x{channels}x{padded}x{padded}xf32>, tensor<{channels}x3x3xf32>)
      outs(%f : tensor<1x{channels}x{size}x{size}xf32>) -> tensor<1x{channels}x{size}x{size}xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (c)>,
      affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%c, %b : tensor<1x{channels}x{size}x{size}xf32>, tensor<{channels}xf32>)
      outs(%e : tensor<1x{channels}x{size}x{size}xf32>) {{
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %sum = arith.addf %in, %bias : f32
    linalg.yield %sum : f32
  }} -> tensor<1x{channels}x{size}x{size}xf32>
  return %r : tensor<1x{channels}x{size}x{size}xf32>
}}
"""


def build_softmax(folder: Path, *, repair: bool) -> BuiltModule:
    return build_module(SOFTMAX, folder, repair=repair)


def build_module(text: str, folder: Path, *, repair: bool) -> BuiltModule:
    target = load_target("vulkan")
    folder.mkdir()
    source = folder / "model.mlir"
    source.write_text(emit_iree(text, target))
    options = CompilerOptions(reproducer=folder / "reproducer")
    return build(source, folder / "model.vmfb", folder, target, None, options, lambda stage: None, repair)


def subgroup_size(module: BuiltModule) -> int | str:
    assert isinstance(module.assumptions, VulkanAssumptions)
    return module.assumptions.subgroup_size


def test_threads_that_race_assume_the_subgroup_size(tmp_path: Path) -> None:
    # No subgroup instruction, no barrier, and right only if all 64 threads run in lockstep.
    module = build_softmax(tmp_path / "raw", repair=False)
    (kernel,) = find_modules(module.vmfb.read_bytes())
    assert thread_axes(kernel) == frozenset()
    assert redundant_axes(kernel, (1, 1, 64)) == [2]
    assert races(kernel, (1, 1, 64))
    assert subgroup_size(module) == 64
    assert module.repairs == ()


@pytest.mark.vulkan
def test_the_repair_leaves_one_thread_and_the_right_result(tmp_path: Path) -> None:
    module = build_softmax(tmp_path / "repaired", repair=True)
    (repair,) = module.repairs
    assert "softmax" in repair.kernel
    assert (repair.before, repair.after) == ((1, 1, 64), (1, 1, 1))
    assert subgroup_size(module) == "any"
    (kernel,) = find_modules(module.vmfb.read_bytes())
    assert not races(kernel, (1, 1, 1))
    assert repair_vmfb(module.vmfb) == []
    x = np.random.default_rng(0).standard_normal(SPEC.shape).astype(np.float32)
    (y,) = LoadedModule(module.vmfb, None, resolve_device("vulkan")[0], [SPEC], [SPEC])([x])
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    np.testing.assert_allclose(y, exponentials / exponentials.sum(axis=-1, keepdims=True), rtol=1e-5)


@pytest.mark.vulkan
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "plain"])
@pytest.mark.parametrize(("channels", "size"), [(8, 16), (16, 8), (24, 4)], ids=str)
def test_barriers_part_threads_that_order_their_loops_differently(
    tmp_path: Path, channels: int, size: int, bias: bool
) -> None:
    text = DEPTHWISE.format(channels=channels, size=size, padded=size + 2)
    if not bias:  # Then the tile is in the result itself.
        text = text.replace("return %r", "return %c")
    raw = build_module(text, tmp_path / "raw", repair=False)
    assert subgroup_size(raw) == 64
    module = build_module(text, tmp_path / "repaired", repair=True)
    (repair,) = module.repairs
    assert repair.before == repair.after
    assert 1 <= repair.barriers <= 2
    assert subgroup_size(module) == "any"
    (kernel,) = find_modules(module.vmfb.read_bytes())
    assert not races(kernel, repair.after)
    binary = tmp_path / "kernel.spv"
    binary.write_bytes(spirv_of(module.vmfb))
    done = subprocess.run(
        ["spirv-val", "--target-env", "vulkan1.1", binary], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")

    random = np.random.default_rng(0)
    x = random.standard_normal((1, channels, size + 2, size + 2)).astype(np.float32)
    k = random.standard_normal((channels, 3, 3)).astype(np.float32)
    b = random.standard_normal(channels).astype(np.float32)
    inputs = [TensorSpec(name, value.shape, "f32") for name, value in (("x", x), ("k", k), ("b", b))]
    outputs = [TensorSpec("y", (1, channels, size, size), "f32")]
    (y,) = LoadedModule(module.vmfb, None, resolve_device("vulkan")[0], inputs, outputs)([x, k, b])
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    expected = np.einsum("nchwij,cij->nchw", windows, k) + (b[None, :, None, None] if bias else 0)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def spirv_of(vmfb: Path) -> bytes:
    """The only kernel of a module."""
    data = vmfb.read_bytes()
    start = data.find((0x07230203).to_bytes(4, "little"))
    return data[start : start + 4 * int.from_bytes(data[start - 4 : start], "little")]


# Hand-written kernels. `{index}` is where in workgroup memory a thread accumulates.
KERNEL = """
OpCapability Shader
OpExtension "SPV_KHR_storage_buffer_storage_class"
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main" %lid{interface}
OpExecutionMode %main LocalSize {size}
OpDecorate %lid BuiltIn LocalInvocationId
{decorations}
%void = OpTypeVoid
%fn = OpTypeFunction %void
%u32 = OpTypeInt 32 0
%f32 = OpTypeFloat 32
%v3 = OpTypeVector %u32 3
%in_v3 = OpTypePointer Input %v3
%in_u32 = OpTypePointer Input %u32
%lid = OpVariable %in_v3 Input
{variables}
%c0 = OpConstant %u32 0
%c1 = OpConstant %u32 1
%c2 = OpConstant %u32 2
%c8 = OpConstant %u32 8
%c264 = OpConstant %u32 264
%c64 = OpConstant %u32 64
%one = OpConstant %f32 1
%array = OpTypeArray %f32 %c64
%wg_array = OpTypePointer Workgroup %array
%wg_f32 = OpTypePointer Workgroup %f32
%shared = OpVariable %wg_array Workgroup
%main = OpFunction %void None %fn
%entry = OpLabel
%id = OpLoad %v3 %lid
%x = OpCompositeExtract %u32 %id 0
%y = OpCompositeExtract %u32 %id 1
%row = OpIMul %u32 %y %c8
%xy = OpIAdd %u32 %row %x
%column = OpIMul %u32 %x %c8
%yx = OpIAdd %u32 %column %y
{body}
%at = OpAccessChain %wg_f32 %shared {index}
%old = OpLoad %f32 %at
%new = OpFAdd %f32 %old %one
OpStore %at %new
OpReturn
OpFunctionEnd
"""


def assemble(folder: Path, **parts: str) -> bytes:
    filled = {"size": "8 8 1", "index": "%xy", "interface": "", "decorations": "", "variables": "", "body": "", **parts}
    source, binary = folder / "kernel.spvasm", folder / "kernel.spv"
    source.write_text(KERNEL.format(**filled))
    subprocess.run(["spirv-as", "--target-env", "spv1.3", source, "-o", binary], check=True)
    return binary.read_bytes()


# Each thread writes its slot in row-major order; `%yx` is the slot of another thread.
WRITE_OWN = "%own = OpAccessChain %wg_f32 %shared %xy\nOpStore %own %one\n"
# All threads write slot 0: the same constant, or each its number.
WRITE_SAME = "%own = OpAccessChain %wg_f32 %shared %c0\nOpStore %own %one\n"
WRITE_NUMBER = "%number = OpConvertUToF %f32 %x\n%own = OpAccessChain %wg_f32 %shared %c0\nOpStore %own %number\n"
BARRIER = "OpControlBarrier %c2 %c2 %c264"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, False),
        ({"index": "%x"}, True),
        ({"index": "%c0"}, True),
        ({"index": "%x", "size": "8 1 1"}, False),
        ({"index": "%c0", "size": "1 1 1"}, False),
        # All rows count in one slot at once: the barrier in front of that does not part them.
        ({"index": "%x", "body": BARRIER}, True),
        ({"index": "%yx", "body": WRITE_OWN}, True),
        ({"index": "%yx", "body": WRITE_OWN + BARRIER}, False),
        # Whoever is last, the slot holds the same.
        ({"body": WRITE_SAME + BARRIER}, False),
        ({"body": WRITE_SAME}, True),
        ({"body": WRITE_NUMBER + BARRIER}, True),
    ],
    ids=[
        "own slot",
        "rows share",
        "all share",
        "one row",
        "one thread",
        "late",
        "transposed",
        "barrier",
        "same",
        "same, late",
        "number",
    ],
)
def test_threads_meet_unless_each_has_a_slot(tmp_path: Path, parts: dict[str, str], expected: bool) -> None:
    module = parse_module(assemble(tmp_path, **parts))
    (mode,) = module.workgroup_sizes
    assert races(module, mode.operands[2:5]) is expected
    assert needs_of(module).assumes_subgroup_size is expected


LINEAR_INDEX = {
    "interface": " %index",
    "decorations": "OpDecorate %index BuiltIn LocalInvocationIndex",
    "variables": "%index = OpVariable %in_u32 Input",
}
COUNTER = {
    "variables": "%wg_u32 = OpTypePointer Workgroup %u32\n%counter = OpVariable %wg_u32 Workgroup",
    "body": "%count = OpAtomicIAdd %u32 %counter %c1 %c0 %c1",
}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, [2]),
        # The linear index tells threads apart along every axis; the vector as a whole may.
        (LINEAR_INDEX, []),
        ({"body": "%sum = OpIAdd %v3 %id %id"}, []),
        # Each superfluous thread would have counted once more.
        (COUNTER, []),
    ],
    ids=["idle axis", "linear index", "whole vector", "atomic"],
)
def test_threads_are_superfluous_only_if_they_cannot_tell_themselves_apart(
    tmp_path: Path, parts: dict[str, str], expected: list[int]
) -> None:
    module = parse_module(assemble(tmp_path, size="8 8 4", **parts))
    assert redundant_axes(module, (8, 8, 4)) == expected
    assert redundant_axes(module, (8, 8, 1)) == []


def test_the_repair_changes_the_extents_and_nothing_else(tmp_path: Path) -> None:
    kernel = assemble(tmp_path, size="8 8 4")
    vmfb = tmp_path / "module.vmfb"
    # As a .vmfb holds it: behind its length in words, among other bytes.
    before = b"head" + (len(kernel) // 4).to_bytes(4, "little") + kernel + b"tail"
    vmfb.write_bytes(before)
    assert repair_vmfb(vmfb) == [Repair(kernel="main", before=(8, 8, 4), after=(8, 8, 1))]
    after = vmfb.read_bytes()
    assert len(after) == len(before)
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert changed == [(4, 1)]
    binary = tmp_path / "after.spv"
    binary.write_bytes(after[8:-4])
    text = subprocess.run(["spirv-dis", binary], capture_output=True, text=True, check=True).stdout
    assert re.search(r"LocalSize 8 8 1\b", text)
