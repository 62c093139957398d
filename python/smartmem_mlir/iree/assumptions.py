"""What a compiled module assumes of the device it runs on, and how a device that differs is refused.

IREE checks none of this when it loads a module: a wrong subgroup size gives wrong numbers, a missing CPU feature an
illegal instruction.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from smartmem_mlir.errors import CompilerError, DeviceError
from smartmem_mlir.iree.cpu import NOT_HARDWARE, Cpu, this_cpu
from smartmem_mlir.iree.image_layer import uses_images
from smartmem_mlir.iree.shaders import KernelNeeds, find_modules, needs_of
from smartmem_mlir.iree.vulkan import VulkanDevice
from smartmem_mlir.targets import TargetDescription

# SPIR-V version -> Vulkan version whose implementations must accept it.
_VULKAN_FOR_SPIRV = {(1, 0): (1, 0), (1, 1): (1, 1), (1, 2): (1, 1), (1, 3): (1, 1), (1, 4): (1, 2), (1, 5): (1, 2)}
_NEWEST_VULKAN = (1, 3)


class CpuAssumptions(BaseModel):
    """A module for `local-task` and `local-sync`.

    Args:
        architecture: As `platform.machine()` names it.
        triple: LLVM target triple, for the record.
        features: LLVM features that the code may use and that an operating system reports.
        unchecked: Features that it may use and that cannot be seen on the machine that compiled it; recorded only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["cpu"] = "cpu"
    architecture: str
    triple: str
    features: tuple[str, ...]
    unchecked: tuple[str, ...] = ()

    def differences(self, cpu: Cpu) -> list[str]:
        """What `cpu` lacks, each as "wanted, given"."""
        if cpu.architecture != self.architecture:
            return [f"architecture {self.architecture}, the machine is {cpu.architecture}"]
        missing = [feature for feature in self.features if feature not in cpu.features]
        return [f"CPU features {', '.join(missing)}, the machine lacks them"] if missing else []


class VulkanAssumptions(BaseModel):
    """A module for Vulkan: the union of what its SPIR-V kernels need.

    Args:
        subgroup_size: Size that the kernels are right for; "any" if no result can depend on it.
        subgroup_from: The target whose subgroup size it is.
        spirv_version: Newest SPIR-V version among the kernels.
        capabilities: SPIR-V capabilities.
        extensions: SPIR-V extensions.
        workgroup_size: Largest extents along x, y, z.
        workgroup_invocations: Largest product of extents.
        shared_memory_bytes: Largest use of workgroup memory.
        storage_buffers: Most buffers bound to one kernel.
        binding_bytes: Largest tensor that is bound.
        dispatch_abi: How kernels receive their buffers.
        kernels: Number of SPIR-V modules looked at.
        images: Whether kernels have images, which only a device with the image layer gives them.
        matrices: Cooperative matrices that kernels multiply, f16 into f32: rows, columns and terms of each product.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["vulkan"] = "vulkan"
    subgroup_size: int | Literal["any"]
    subgroup_from: str
    spirv_version: tuple[int, int]
    capabilities: tuple[str, ...]
    extensions: tuple[str, ...]
    workgroup_size: tuple[int, int, int]
    workgroup_invocations: int
    shared_memory_bytes: int
    storage_buffers: int
    binding_bytes: int
    dispatch_abi: Literal["descriptors"] = "descriptors"
    kernels: int
    images: bool = False
    matrices: tuple[tuple[int, int, int], ...] = ()

    def differences(self, device: VulkanDevice) -> list[str]:
        """Where `device` is not what the kernels assume, each as "wanted, given"."""
        found = []
        if self.subgroup_size not in ("any", device.subgroup_size):
            found.append(
                f"subgroups of {self.subgroup_size} (target {self.subgroup_from}), "
                f"the device has subgroups of {device.subgroup_size}"
            )
        needed = _VULKAN_FOR_SPIRV.get(self.spirv_version, _NEWEST_VULKAN)
        if device.api_version < needed:
            found.append(
                f"SPIR-V {_dotted(self.spirv_version)} (Vulkan {_dotted(needed)}), "
                f"the device has Vulkan {_dotted(device.api_version)}"
            )
        missing = [name for name in self.capabilities if name not in device.capabilities]
        if missing:
            found.append(f"{', '.join(missing)}, the device lacks {'it' if len(missing) == 1 else 'them'}")
        unknown = [shape for shape in self.matrices if shape not in device.matrices]
        if unknown:
            known = ", ".join(map(_by, sorted(device.matrices))) or "none"
            found.append(f"cooperative matrices of {', '.join(map(_by, unknown))}, the device has {known}")
        limits: list[tuple[str, int, int]] = [
            *(
                (f"workgroups of {wanted} along {axis}", wanted, given)
                for axis, wanted, given in zip("xyz", self.workgroup_size, device.max_workgroup_size, strict=True)
            ),
            (
                f"workgroups of {self.workgroup_invocations} invocations",
                self.workgroup_invocations,
                device.max_workgroup_invocations,
            ),
            (
                f"{self.shared_memory_bytes} bytes of shared memory",
                self.shared_memory_bytes,
                device.max_shared_memory_bytes,
            ),
            (f"{self.storage_buffers} storage buffers", self.storage_buffers, device.max_storage_buffers),
            (f"buffers of {self.binding_bytes} bytes", self.binding_bytes, device.max_storage_buffer_bytes),
        ]
        found += [f"{what}, the device allows {given}" for what, wanted, given in limits if wanted > given]
        return found


Assumptions = Annotated[CpuAssumptions | VulkanAssumptions, Field(discriminator="kind")]


def refuse_other_device(assumptions: CpuAssumptions | VulkanAssumptions, device: Cpu | VulkanDevice) -> None:
    """Let nothing but the device that a module was compiled for pass.

    Raises:
        DeviceError: Naming what the module assumes and what the device has.
    """
    if isinstance(assumptions, CpuAssumptions):
        matching, wanted = isinstance(device, Cpu), "a CPU"
    else:
        matching, wanted = isinstance(device, VulkanDevice), "a Vulkan device"
    if not matching:
        raise DeviceError(
            f"the module was compiled for {wanted}, the device is {device.name}",
            hint="choose another --device or compile for another --target",
        )
    differences = assumptions.differences(device)  # type: ignore[arg-type]
    if differences:
        raise DeviceError(
            f"the module does not fit {device.name}: it assumes " + "; it assumes ".join(differences),
            hint="compile it for a --target that fits this device"
            if isinstance(device, VulkanDevice)
            else "compile it on the machine that runs it",
        )


def vulkan_assumptions(vmfb: Path, target: TargetDescription, binding_bytes: int) -> VulkanAssumptions:
    """Read the assumptions of a Vulkan module from its kernels.

    Args:
        vmfb: The module.
        target: What it was compiled for; the one place that says which subgroup size IREE used.
        binding_bytes: Largest tensor that a kernel binds.

    Raises:
        CompilerError: The module holds no SPIR-V although its target is Vulkan.
    """
    needs = [needs_of(module) for module in find_modules(vmfb.read_bytes())]
    if target.vulkan is None or not needs:
        raise CompilerError("no SPIR-V kernel in the module", file=vmfb)
    assumes_subgroup_size = any(kernel.assumes_subgroup_size for kernel in needs)
    return VulkanAssumptions(
        subgroup_size=target.vulkan.subgroup_sizes[0] if assumes_subgroup_size else "any",
        subgroup_from=target.name,
        spirv_version=max(kernel.version for kernel in needs),
        capabilities=_union(kernel.capabilities for kernel in needs),
        extensions=_union(kernel.extensions for kernel in needs),
        workgroup_size=_largest_extents(needs),
        workgroup_invocations=max(x * y * z for x, y, z in (kernel.workgroup_size for kernel in needs)),
        shared_memory_bytes=max(kernel.shared_memory_bytes for kernel in needs),
        storage_buffers=max(kernel.storage_buffers for kernel in needs),
        binding_bytes=binding_bytes,
        kernels=len(needs),
        images=uses_images(vmfb),
        matrices=tuple(sorted(set[tuple[int, int, int]]().union(*(kernel.matrices for kernel in needs)))),
    )


_EXECUTABLE_TARGET = re.compile(r'#hal\.executable\.target<"llvm-cpu", "[^"]*", \{(.*?)\}>')
_ATTRIBUTE = '\\b{} = "([^"]*)"'


def cpu_assumptions(flow: Path, target: TargetDescription) -> CpuAssumptions:
    """Read the assumptions of a CPU module from the executable target that IREE resolved.

    Args:
        flow: The flow IR that the module was compiled from.
        target: What it was compiled for.

    Raises:
        CompilerError: The flow IR names no CPU target.
    """
    match = _EXECUTABLE_TARGET.search(flow.read_text())
    triple = re.search(_ATTRIBUTE.format("target_triple"), match[1]) if match else None
    if match is None or triple is None:
        raise CompilerError("no CPU target in IREE's flow IR", file=flow)
    listed = re.search(_ATTRIBUTE.format("cpu_features"), match[1])
    # LLVM lists a feature several times; the last mention wins.
    enabled = {item[1:]: item[0] == "+" for item in (listed[1].split(",") if listed else []) if item}
    features = [name for name, on in sorted(enabled.items()) if on]
    compiled_for_host = target.cpu is not None and target.cpu.cpu == "host"
    host = this_cpu()
    checked = [name for name in features if (name in host.features if compiled_for_host else name not in NOT_HARDWARE)]
    return CpuAssumptions(
        architecture=triple[1].split("-")[0],
        triple=triple[1],
        features=tuple(checked),
        unchecked=tuple(name for name in features if name not in checked),
    )


def _union(sets: Iterable[set[str]]) -> tuple[str, ...]:
    return tuple(sorted(set[str]().union(*sets)))


def _largest_extents(needs: list[KernelNeeds]) -> tuple[int, int, int]:
    x, y, z = (max(kernel.workgroup_size[axis] for kernel in needs) for axis in range(3))
    return x, y, z


def _by(extents: tuple[int, int, int]) -> str:
    return "x".join(map(str, extents))


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
