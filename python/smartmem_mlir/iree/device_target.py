"""A target description in IREE's own words: flags of iree-compile and the device attribute on the module."""

from __future__ import annotations

from smartmem_mlir.targets import CpuTarget, TargetDescription, VulkanTarget


def compile_flags(target: TargetDescription, opt_level: str | None = None) -> list[str]:
    """The flags that select a target.

    A Vulkan target needs none of its own: its limits travel in the module as :func:`device_targets_attr`, because the
    flag `--iree-vulkan-target` knows fixed products only.

    Args:
        target: The target.
        opt_level: Overrides the target's optimisation level.
    """
    flags = [f"--iree-opt-level={opt_level or target.opt_level}", *target.iree_flags]
    if target.cpu is not None:
        flags += _cpu_flags(target.cpu)
    else:
        # Kernels of ours bind tensors where they lie; the strictest device that Vulkan allows wants this.
        flags.append("--iree-stream-resource-min-offset-alignment=256")
    return flags


def device_targets_attr(target: TargetDescription) -> str | None:
    """The value of the module attribute `hal.device.targets`, or None where flags say everything."""
    if target.vulkan is None:
        return None
    return f'[#hal.device.target<"vulkan", [{executable_target(target)}]> : !hal.device]'


def executable_target(target: TargetDescription) -> str:
    """IREE's `#hal.executable.target` of a Vulkan target, as text."""
    assert target.vulkan is not None, "kernels of the CPU need no attribute"
    info = _gpu_target_attr(target.vulkan)
    return f'#hal.executable.target<"vulkan-spirv", "vulkan-spirv-fb", {{iree_codegen.target_info = {info}}}>'


def _cpu_flags(cpu: CpuTarget) -> list[str]:
    flags = [
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        f"--iree-llvmcpu-target-cpu={cpu.cpu}",
        # By default IREE computes f64 models in f32 and changes the types of their inputs and outputs.
        "--iree-input-demote-f64-to-f32=false",
    ]
    if cpu.triple != "host":
        flags.append(f"--iree-llvmcpu-target-triple={cpu.triple}")
    if cpu.features:
        flags.append(f"--iree-llvmcpu-target-cpu-features={','.join(cpu.features)}")
    return flags


def _gpu_target_attr(vulkan: VulkanTarget) -> str:
    features = ",".join(
        [
            f"spirv:v{vulkan.spirv_version}",
            *(f"cap:{capability}" for capability in vulkan.capabilities),
            *(f"ext:{extension}" for extension in vulkan.extensions),
        ]
    )
    fields = [
        f"compute = {'|'.join(vulkan.compute)}",
        f"storage = {'|'.join(vulkan.storage)}",
        f"subgroup = {'|'.join(vulkan.subgroup_operations) or 'none'}",
        *([f"dot = {'|'.join(vulkan.dot_products)}"] if vulkan.dot_products else []),
        f"subgroup_size_choices = {_list_text(vulkan.subgroup_sizes)}",
        f"max_workgroup_sizes = {_list_text(vulkan.max_workgroup_size)}",
        f"max_thread_count_per_workgroup = {vulkan.max_workgroup_invocations}",
        f"max_workgroup_memory_bytes = {vulkan.max_shared_memory_bytes}",
        f"max_workgroup_counts = {_list_text(vulkan.max_workgroup_count)}",
    ]
    return f'#iree_gpu.target<arch = "", features = "{features}", wgp = <{", ".join(fields)}>>'


def _list_text(values: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, values))}]"
