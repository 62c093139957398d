"""From a module in our dialect to an IREE module: emit, `iree-compile`, count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from smartmem_mlir.iree.assumptions import (
    CpuAssumptions,
    VulkanAssumptions,
    cpu_assumptions,
    vulkan_assumptions,
)
from smartmem_mlir.iree.compiler import CompilerOptions, run_iree_compile
from smartmem_mlir.iree.device_target import compile_flags
from smartmem_mlir.iree.flow.summary import FlowSummary
from smartmem_mlir.iree.isolation import count_isolated
from smartmem_mlir.iree.shaders import Repair, repair_vmfb
from smartmem_mlir.iree.vectors import STAGE, TEXT_FLAGS, scalarize
from smartmem_mlir.targets import TargetDescription


@dataclass(frozen=True)
class BuiltModule:
    """A compiled module and what is known about it.

    Args:
        vmfb: The file.
        flow: Kernels, copies and bytes, counted on the flow IR that it was compiled from.
        assumptions: What it assumes of its device.
        repairs: Kernels whose superfluous threads were taken away, or that got barriers.
        misaligned: Executables that IREE would vectorise wrongly; scalar now, if repairs were asked for.
    """

    vmfb: Path
    flow: FlowSummary
    assumptions: CpuAssumptions | VulkanAssumptions
    repairs: tuple[Repair, ...]
    misaligned: tuple[str, ...] = ()


def compile_to_flow(
    source: Path, output: Path, target: TargetDescription, opt_level: str | None, options: CompilerOptions
) -> FlowSummary:
    """Run IREE up to its flow IR and count.

    Args:
        source: What :func:`smartmem_mlir.iree.lower.emit_iree` made, as text.
        output: The flow IR, in generic form.
        target: The target.
        opt_level: Overrides the target's optimisation level.
        options: Time limit and where a failure leaves its reproducer.

    Raises:
        CompilerError: iree-compile failed.
    """
    flags = [*compile_flags(target, opt_level), "--compile-to=flow", "--mlir-print-op-generic"]
    run_iree_compile(source, output, flags, options)
    return count_isolated(output, options)


def build(
    source: Path,
    vmfb: Path,
    workspace: Path,
    target: TargetDescription,
    opt_level: str | None,
    options: CompilerOptions,
    progress: Callable[[str], None],
    repair: bool = True,
) -> BuiltModule:
    """Compile to a module.

    IREE runs in parts, to its flow IR and from there, for Vulkan with a stop at the kernels' configurations: the IR
    that is counted is the IR that is compiled, and nothing is done twice.

    Args:
        source: What :func:`smartmem_mlir.iree.lower.emit_iree` made, as text.
        vmfb: The file to write.
        workspace: Folder for the flow IR.
        target: The target.
        opt_level: Overrides the target's optimisation level.
        options: Time limit and where a failure leaves its reproducer.
        progress: Told what happens next.
        repair: Mend Vulkan kernels that race or read vectors at the wrong place; see `iree.shaders.repair` and
            `iree.vectors`.

    Raises:
        CompilerError: iree-compile failed.
    """
    progress("forming kernels")
    flow_ir = workspace / "flow.mlir"
    flow = compile_to_flow(source, flow_ir, target, opt_level, options)
    progress(f"compiling {flow.kernels} kernels")
    flags = compile_flags(target, opt_level)
    misaligned: list[str] = []
    if target.vulkan is None:
        run_iree_compile(flow_ir, vmfb, [*flags, "--compile-from=flow"], options)
    else:
        configured = workspace / "configured.mlir"
        run_iree_compile(
            flow_ir, configured, [*flags, "--compile-from=flow", f"--compile-to={STAGE}", *TEXT_FLAGS], options
        )
        text, misaligned = scalarize(configured.read_text(), repair)
        configured.write_text(text)
        run_iree_compile(configured, vmfb, [*flags, f"--compile-from={STAGE}"], options)
    assumptions: CpuAssumptions | VulkanAssumptions
    repairs = repair_vmfb(vmfb) if repair and target.vulkan is not None else []
    if target.vulkan is not None:
        assumptions = vulkan_assumptions(vmfb, target, flow.largest_binding_bytes)
    else:
        assumptions = cpu_assumptions(flow_ir, target)
    return BuiltModule(
        vmfb=vmfb, flow=flow, assumptions=assumptions, repairs=tuple(repairs), misaligned=tuple(misaligned)
    )
