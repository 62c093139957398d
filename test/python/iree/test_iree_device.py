"""What a module assumes of its device, read from what IREE really made, and the refusal of a device that differs."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from smartmem_mlir.errors import CompilerError, DeviceError, OptionError
from smartmem_mlir.iree.assumptions import (
    CpuAssumptions,
    VulkanAssumptions,
    refuse_other_device,
    vulkan_assumptions,
)
from smartmem_mlir.iree.build import BuiltModule, build
from smartmem_mlir.iree.compiler import CompilerOptions
from smartmem_mlir.iree.cpu import this_cpu
from smartmem_mlir.iree.device import resolve_device
from smartmem_mlir.iree.lower import emit_iree
from smartmem_mlir.iree.runtime import LoadedModule
from smartmem_mlir.iree.shaders import find_modules, needs_of
from smartmem_mlir.iree.shaders.module import parse_module
from smartmem_mlir.iree.vulkan import VulkanDevice, vulkan_devices
from smartmem_mlir.signature import TensorSpec
from smartmem_mlir.targets import load_target

# A row sum: with subgroup operations IREE reduces across lanes, without them it cannot.
ROW_SUM = """
func.func @main(%x: tensor<49x256xf32>) -> tensor<49xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<49xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<49xf32>) -> tensor<49xf32>
  %r = linalg.reduce { arith.addf } ins(%x : tensor<49x256xf32>) outs(%f : tensor<49xf32>) dimensions = [1]
  return %r : tensor<49xf32>
}
"""
INPUTS, OUTPUTS = [TensorSpec("x", (49, 256), "f32")], [TensorSpec("y", (49,), "f32")]


def build_row_sum(folder: Path, target_name: str) -> BuiltModule:
    target = load_target(target_name)
    folder.mkdir()
    source = folder / "model.mlir"
    source.write_text(emit_iree(ROW_SUM, target))
    options = CompilerOptions(reproducer=folder / "reproducer")
    return build(source, folder / "model.vmfb", folder, target, None, options, lambda stage: None)


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> dict[str, BuiltModule]:
    folder = tmp_path_factory.mktemp("row_sum")
    names = ("cpu", "cpu-arm64-android", "vulkan", "lavapipe", "adreno", "mali", "nvidia")
    return {name: build_row_sum(folder / name, name) for name in names}


@pytest.fixture(scope="module")
def lavapipe() -> VulkanDevice:
    return next(device for device in vulkan_devices() if "llvmpipe" in device.name)


def assumed(module: BuiltModule) -> VulkanAssumptions:
    assert isinstance(module.assumptions, VulkanAssumptions)
    return module.assumptions


@pytest.mark.parametrize(
    ("target", "size"), [("vulkan", "any"), ("lavapipe", 8), ("adreno", 64), ("mali", 16), ("nvidia", 32)]
)
def test_the_subgroup_size_is_assumed_only_where_kernels_see_it(
    modules: dict[str, BuiltModule], target: str, size: int | str
) -> None:
    assert assumed(modules[target]).subgroup_size == size


def test_our_reading_of_spirv_agrees_with_the_disassembler(modules: dict[str, BuiltModule], tmp_path: Path) -> None:
    for name in ("vulkan", "adreno"):
        data = modules[name].vmfb.read_bytes()
        (module,) = find_modules(data)
        needs = needs_of(module)
        start = data.find((0x07230203).to_bytes(4, "little"))
        words = int.from_bytes(data[start - 4 : start], "little")
        binary = tmp_path / f"{name}.spv"
        binary.write_bytes(data[start : start + 4 * words])
        assert needs_of(parse_module(binary.read_bytes())) == needs
        text = subprocess.run(["spirv-dis", binary], capture_output=True, text=True, check=True).stdout
        assert needs.capabilities == set(re.findall(r"OpCapability (\w+)", text))
        assert needs.extensions == set(re.findall(r'OpExtension "(\w+)"', text))
        local_size = re.search(r"LocalSize (\d+) (\d+) (\d+)", text)
        assert local_size is not None
        assert needs.workgroup_size == tuple(map(int, local_size.groups()))
        assert needs.assumes_subgroup_size == ("OpGroupNonUniform" in text)
        version = re.search(r"; Version: (\d)\.(\d)", text)
        assert version is not None
        assert needs.version == tuple(map(int, version.groups()))
        assert needs.storage_buffers == len(re.findall(r"OpVariable %\S+ StorageBuffer", text))


@pytest.mark.parametrize("target", ["vulkan", "lavapipe", "adreno", "mali", "nvidia"])
def test_our_targets_make_valid_spirv(modules: dict[str, BuiltModule], target: str, tmp_path: Path) -> None:
    data = modules[target].vmfb.read_bytes()
    start = data.find((0x07230203).to_bytes(4, "little"))
    binary = tmp_path / "kernel.spv"
    binary.write_bytes(data[start : start + 4 * int.from_bytes(data[start - 4 : start], "little")])
    command = ["spirv-val", "--target-env", "vulkan1.1", binary]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_spirv_that_is_cut_short_is_not_taken_for_a_kernel(modules: dict[str, BuiltModule]) -> None:
    data = modules["vulkan"].vmfb.read_bytes()
    start = data.find((0x07230203).to_bytes(4, "little"))
    assert list(find_modules(data[: start + 64])) == []
    with pytest.raises(ValueError, match="not a SPIR-V module"):
        parse_module(b"\x03\x02\x23\x07" + b"\0" * 12)


def test_a_module_without_spirv_is_no_vulkan_module(modules: dict[str, BuiltModule]) -> None:
    with pytest.raises(CompilerError, match="no SPIR-V kernel"):
        vulkan_assumptions(modules["cpu"].vmfb, load_target("vulkan"), 0)


@pytest.mark.vulkan
@pytest.mark.parametrize("target", ["vulkan", "lavapipe"])
def test_lavapipe_takes_and_runs_what_fits_it(
    modules: dict[str, BuiltModule], lavapipe: VulkanDevice, target: str
) -> None:
    refuse_other_device(assumed(modules[target]), lavapipe)
    module = LoadedModule(modules[target].vmfb, None, resolve_device("vulkan")[0], INPUTS, OUTPUTS)
    x = np.random.default_rng(0).standard_normal((49, 256)).astype(np.float32)
    (y,) = module([x])
    np.testing.assert_allclose(y, x.sum(axis=1), rtol=1e-4, atol=1e-4)


@pytest.mark.vulkan
@pytest.mark.parametrize(("target", "size"), [("adreno", 64), ("mali", 16), ("nvidia", 32)])
def test_lavapipe_is_refused_by_modules_for_other_subgroup_sizes(
    modules: dict[str, BuiltModule], lavapipe: VulkanDevice, target: str, size: int
) -> None:
    with pytest.raises(DeviceError) as caught:
        refuse_other_device(assumed(modules[target]), lavapipe)
    message = str(caught.value)
    assert f"subgroups of {size} (target {target})" in message
    assert "the device has subgroups of 8" in message
    assert lavapipe.name in message
    assert caught.value.exit_code == 2


@pytest.mark.vulkan
@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"capabilities": frozenset({"Shader", "Matrix"})}, "GroupNonUniform.*the device lacks"),
        ({"max_workgroup_invocations": 4}, r"workgroups of \d+ invocations, the device allows 4"),
        ({"max_workgroup_size": (4, 1, 1)}, r"workgroups of \d+ along x, the device allows 4"),
        ({"max_storage_buffers": 1}, "2 storage buffers, the device allows 1"),
        ({"max_storage_buffer_bytes": 1000}, "buffers of 50176 bytes, the device allows 1000"),
        ({"api_version": (1, 0)}, r"SPIR-V 1\.3 \(Vulkan 1\.1\), the device has Vulkan 1\.0"),
    ],
)
def test_each_limit_is_checked(
    modules: dict[str, BuiltModule], lavapipe: VulkanDevice, change: dict[str, object], complaint: str
) -> None:
    with pytest.raises(DeviceError, match=complaint):
        refuse_other_device(assumed(modules["lavapipe"]), dataclasses.replace(lavapipe, **change))  # type: ignore[arg-type]


def test_shared_memory_is_checked(modules: dict[str, BuiltModule], lavapipe: VulkanDevice) -> None:
    hungry = assumed(modules["vulkan"]).model_copy(update={"shared_memory_bytes": 40000})
    with pytest.raises(DeviceError, match="40000 bytes of shared memory, the device allows 32768"):
        refuse_other_device(hungry, lavapipe)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ((), "none"),
        (((16, 16, 32),), "16x16x32"),
        (((16, 16, 32), (8, 8, 8)), "8x8x8, 16x16x32"),
        (((16, 8, 16), (16, 16, 16)), None),
    ],
)
def test_cooperative_matrices_are_checked(
    modules: dict[str, BuiltModule],
    lavapipe: VulkanDevice,
    given: tuple[tuple[int, int, int], ...],
    complaint: str | None,
) -> None:
    assert lavapipe.matrices == frozenset()
    assert assumed(modules["vulkan"]).matrices == ()
    multiplying = assumed(modules["vulkan"]).model_copy(update={"matrices": ((16, 16, 16),)})
    device = dataclasses.replace(lavapipe, matrices=frozenset(given))
    expected = [] if complaint is None else [f"cooperative matrices of 16x16x16, the device has {complaint}"]
    assert multiplying.differences(device) == expected


def test_the_kind_of_device_is_checked(modules: dict[str, BuiltModule], lavapipe: VulkanDevice) -> None:
    with pytest.raises(DeviceError, match=f"compiled for a CPU, the device is {re.escape(lavapipe.name)}"):
        refuse_other_device(modules["cpu"].assumptions, lavapipe)
    with pytest.raises(DeviceError, match="compiled for a Vulkan device, the device is"):
        refuse_other_device(modules["vulkan"].assumptions, this_cpu())


def test_this_cpu_fits_what_was_compiled_on_it(modules: dict[str, BuiltModule]) -> None:
    cpu = modules["cpu"].assumptions
    assert isinstance(cpu, CpuAssumptions)
    assert cpu.features
    refuse_other_device(cpu, this_cpu())


def test_a_cpu_that_lacks_a_feature_is_refused(modules: dict[str, BuiltModule]) -> None:
    cpu = modules["cpu"].assumptions
    assert isinstance(cpu, CpuAssumptions)
    host = this_cpu()
    flags = frozenset(flag for flag in host.features.flags if not flag.startswith("sse42"))
    poorer = dataclasses.replace(host, features=dataclasses.replace(host.features, flags=flags))
    with pytest.raises(DeviceError, match=r"CPU features crc32, sse4\.2, the machine lacks them"):
        refuse_other_device(cpu, poorer)


def test_another_architecture_is_refused(modules: dict[str, BuiltModule]) -> None:
    arm = modules["cpu-arm64-android"].assumptions
    assert isinstance(arm, CpuAssumptions)
    assert (arm.architecture, arm.features) == ("aarch64", ("dotprod", "neon"))
    x86 = dataclasses.replace(this_cpu(), architecture="x86_64")
    with pytest.raises(DeviceError, match="architecture aarch64, the machine is x86_64"):
        refuse_other_device(arm, x86)


@pytest.mark.vulkan
def test_devices_are_found_by_index_and_uuid(lavapipe: VulkanDevice) -> None:
    assert lavapipe.subgroup_size == 8
    path = f"vulkan://GPU-{lavapipe.uuid}"
    assert resolve_device(f"vulkan://{lavapipe.index}") == resolve_device(path) == (path, lavapipe)


def test_devices_that_do_not_exist_are_named() -> None:
    with pytest.raises(OptionError, match=r"unknown device 'cuda'; devices: cpu, local-task"):
        resolve_device("cuda")
    with pytest.raises(DeviceError, match=r"there is no Vulkan device 'vulkan://99'; devices: vulkan://0"):
        resolve_device("vulkan://99")


def test_without_a_driver_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VK_DRIVER_FILES", "/nonexistent.json")
    monkeypatch.setenv("VK_ICD_FILENAMES", "/nonexistent.json")
    with pytest.raises(DeviceError, match="no Vulkan device on this machine; install a driver"):
        resolve_device("vulkan")


@pytest.mark.parametrize(
    ("missing", "said"), [("vulkan", "'vulkan'.*not installed"), ("_cffi_backend", "'_cffi_backend'.*not installed")]
)
def test_a_missing_package_is_not_taken_for_a_missing_loader(
    monkeypatch: pytest.MonkeyPatch, missing: str, said: str
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "vulkan"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(DeviceError, match=said):
        vulkan_devices()
