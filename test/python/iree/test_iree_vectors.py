"""Slices, pads and windows that start between vectors: IREE vectorises them wrongly, and they are made scalar."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from smartmem_mlir.errors import CompilerError
from smartmem_mlir.iree.build import BuiltModule, build
from smartmem_mlir.iree.compiler import CompilerOptions
from smartmem_mlir.iree.device import resolve_device
from smartmem_mlir.iree.lower import emit_iree
from smartmem_mlir.iree.runtime import Array, LoadedModule
from smartmem_mlir.iree.vectors import scalarize, scalarize_i64
from smartmem_mlir.signature import TensorSpec
from smartmem_mlir.targets import load_target

EXP = """
  %e = tensor.empty() : tensor<64x8x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s : tensor<64x8x8xf32>) outs(%e : tensor<64x8x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %exp = math.exp %in : f32
    linalg.yield %exp : f32
  } -> tensor<64x8x8xf32>
"""
SLICE = f"""
func.func @main(%x: tensor<64x12x12xf32>) -> tensor<64x8x8xf32> {{
  %s = tensor.extract_slice %x[0, OFFSET, OFFSET] [64, 8, 8] [1, 1, 1]
      : tensor<64x12x12xf32> to tensor<64x8x8xf32>
  {EXP}
  return %y : tensor<64x8x8xf32>
}}
"""
PAD = f"""
func.func @main(%s: tensor<64x8x8xf32>) -> tensor<64x12x12xf32> {{
  {EXP}
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %y low[0, OFFSET, OFFSET] high[0, REST, REST] {{
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  }} : tensor<64x8x8xf32> to tensor<64x12x12xf32>
  return %p : tensor<64x12x12xf32>
}}
"""
# In a region of its own a convolution keeps its named form, which IREE vectorises along the rows.
WINDOWS = """
func.func @main(%x: tensor<1x4x12x12xf32>, %k: tensor<8x4x5x5xf32>) -> tensor<1x8x8x8xf32> {
  %r = "flow.dispatch.region"() <{operandSegmentSizes = array<i32: 0, 0>}> ({
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<1x8x8x8xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
    %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
        ins(%x, %k : tensor<1x4x12x12xf32>, tensor<8x4x5x5xf32>) outs(%f : tensor<1x8x8x8xf32>)
        -> tensor<1x8x8x8xf32>
    "flow.return"(%c) : (tensor<1x8x8x8xf32>) -> ()
  }, {}) : () -> tensor<1x8x8x8xf32>
  return %r : tensor<1x8x8x8xf32>
}
"""
ROW_SUM = """
func.func @main(%x: tensor<64x260xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %s = tensor.extract_slice %x[0, OFFSET] [64, 256] [1, 1] : tensor<64x260xf32> to tensor<64x256xf32>
  %e = tensor.empty() : tensor<64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %r = linalg.reduce { arith.addf } ins(%s : tensor<64x256xf32>) outs(%f : tensor<64xf32>) dimensions = [1]
  return %r : tensor<64xf32>
}
"""


def build_module(
    text: str, folder: Path, target_name: str = "vulkan", *, repair: bool = True, fall_back: bool = False
) -> BuiltModule:
    target = load_target(target_name)
    folder.mkdir(exist_ok=True)
    source = folder / "model.mlir"
    source.write_text(emit_iree(text, target))
    options = CompilerOptions(reproducer=folder / "reproducer")
    return build(source, folder / "model.vmfb", folder, target, None, options, lambda stage: None, repair, fall_back)


def run(module: BuiltModule, inputs: list[Array], shape: tuple[int, ...]) -> Array:
    specs = [TensorSpec(f"x{index}", value.shape, "f32") for index, value in enumerate(inputs)]
    loaded = LoadedModule(module.vmfb, None, resolve_device("vulkan")[0], specs, [TensorSpec("y", shape, "f32")])
    return loaded(inputs)[0]


def random(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.vulkan
@pytest.mark.parametrize(("offset", "misaligned"), [(1, 1), (2, 1), (4, 0)], ids=str)
def test_slices_are_read_where_they_start(tmp_path: Path, offset: int, misaligned: int) -> None:
    module = build_module(SLICE.replace("OFFSET", str(offset)), tmp_path)
    assert len(module.misaligned) == misaligned
    x = random(64, 12, 12)
    expected = np.exp(x[:, offset : offset + 8, offset : offset + 8])
    np.testing.assert_allclose(run(module, [x], expected.shape), expected, rtol=1e-5)


@pytest.mark.vulkan
@pytest.mark.parametrize(("offset", "misaligned"), [(1, 1), (4, 0)], ids=str)
def test_pads_are_written_where_they_start(tmp_path: Path, offset: int, misaligned: int) -> None:
    module = build_module(PAD.replace("OFFSET", str(offset)).replace("REST", str(4 - offset)), tmp_path)
    assert len(module.misaligned) == misaligned
    x = random(64, 8, 8)
    expected = np.pad(np.exp(x), ((0, 0), (offset, 4 - offset), (offset, 4 - offset)))
    np.testing.assert_allclose(run(module, [x], expected.shape), expected, rtol=1e-5)


@pytest.mark.vulkan
def test_windows_are_read_where_they_start(tmp_path: Path) -> None:
    module = build_module(WINDOWS, tmp_path)
    assert len(module.misaligned) == 1
    x, k = random(1, 4, 12, 12), random(8, 4, 5, 5)
    windows = np.lib.stride_tricks.sliding_window_view(x, (5, 5), axis=(2, 3))
    expected = np.einsum("nchwij,fcij->nfhw", windows, k)
    np.testing.assert_allclose(run(module, [x, k], expected.shape), expected, rtol=1e-4, atol=1e-4)


def test_what_cannot_be_made_scalar_is_refused(tmp_path: Path) -> None:
    # With subgroup operations IREE reduces rows by its own scheme.
    with pytest.raises(CompilerError, match="read vectors at the wrong place in kernel 'main_dispatch_0'"):
        build_module(ROW_SUM.replace("OFFSET", "1"), tmp_path, "lavapipe")
    aligned = build_module(ROW_SUM.replace("OFFSET", "4"), tmp_path, "lavapipe")
    assert aligned.misaligned == ()


@pytest.mark.vulkan
def test_without_subgroup_operations_it_can(tmp_path: Path) -> None:
    module = build_module(ROW_SUM.replace("OFFSET", "1"), tmp_path, "lavapipe", fall_back=True)
    assert not module.attempt.subgroups
    assert [fallback.subgroups for fallback in module.fallbacks] == [True]
    assert len(module.misaligned) == 1
    x = random(64, 260)
    np.testing.assert_allclose(run(module, [x], (64,)), x[:, 1:257].sum(1), rtol=1e-4, atol=1e-4)


def test_kernels_with_64_bit_integers_are_scalar_where_these_are_pairs() -> None:
    body = EXECUTABLE.replace("BODY", "linalg.fill outs(%x : tensor<4xTYPE>)")
    text = "module {" + body.replace("NAME", "one").replace("TYPE", "i64")
    text += body.replace("NAME", "other").replace("TYPE", "i32")
    text += body.replace("NAME", "third").replace("TYPE", "i64").replace("BaseVectorize", "SubgroupReduce") + "}"
    changed = scalarize_i64(text)
    assert [line.split("<")[2].strip(">") for line in changed.splitlines() if "translation_info =" in line] == [
        "BaseDistribute",
        "BaseVectorize",
        "SubgroupReduce",
    ]


def test_without_repair_kernels_are_only_named(tmp_path: Path) -> None:
    module = build_module(SLICE.replace("OFFSET", "1"), tmp_path, repair=False)
    assert module.misaligned == ("main_dispatch_0",)


EXECUTABLE = """
  hal.executable private @NAME {
    translation_info = #iree_codegen.translation_info<pipeline = #iree_gpu.spirv_pipeline<BaseVectorize>>
    BODY
  }
"""


@pytest.mark.parametrize(
    ("body", "misaligned"),
    [
        ("tensor.extract_slice %x[0, 4] [8, 8] [1, 1] : tensor<8x12xf32> to tensor<8x8xf32>", False),
        ("tensor.extract_slice %x[1, 0] [8, 8] [1, 1] : tensor<9x12xf32> to tensor<8x8xf32>", False),
        ("tensor.extract_slice %x[0, %i] [8, 8] [1, 1] : tensor<8x12xf32> to tensor<8x8xf32>", True),
        ("tensor.pad %x low[0, 3] high[0, 1] {", True),
        ("linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>]}", False),
        ("linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0 + 1, d1)>]}", False),
        ("linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d0 + d1)>]}", True),
        ("linalg.conv_2d_nhwc_hwcf {strides = dense<1> : vector<2xi64>}", False),
        ("linalg.pooling_nchw_max {strides = dense<1> : vector<2xi64>}", True),
    ],
)
def test_only_the_innermost_dimension_matters(body: str, misaligned: bool) -> None:
    other = EXECUTABLE.replace("NAME", "other").replace("BODY", "linalg.fill")
    text = "module {" + EXECUTABLE.replace("NAME", "one").replace("BODY", body) + other + "}"
    changed, found = scalarize(text, repair=True)
    assert found == (["one"] if misaligned else [])
    first, second = changed.split("@other")
    assert ("BaseDistribute" in first) is misaligned
    assert "BaseVectorize" in second
    assert scalarize(text, repair=False) == (text, found)
