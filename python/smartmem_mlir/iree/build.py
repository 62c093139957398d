"""From a module in our dialect to an IREE module: emit, `iree-compile`, count."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from smartmem_mlir.errors import CompilerError
from smartmem_mlir.iree.assumptions import (
    CpuAssumptions,
    VulkanAssumptions,
    cpu_assumptions,
    vulkan_assumptions,
)
from smartmem_mlir.iree.compiler import CompilerOptions, TimeLimitError, run_iree_compile
from smartmem_mlir.iree.device_target import compile_flags
from smartmem_mlir.iree.fallback import Attempt, Fallback
from smartmem_mlir.iree.flow.summary import FlowSummary
from smartmem_mlir.iree.isolation import count_isolated
from smartmem_mlir.iree.shaders import Repair, repair_vmfb
from smartmem_mlir.iree.vectors import STAGE, TEXT_FLAGS, scalarize, scalarize_i64
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
        attempt: How it was compiled.
        fallbacks: How it was not: what was tried before that and failed, in order.
    """

    vmfb: Path
    flow: FlowSummary
    assumptions: CpuAssumptions | VulkanAssumptions
    repairs: tuple[Repair, ...]
    misaligned: tuple[str, ...]
    attempt: Attempt
    fallbacks: tuple[Fallback, ...] = ()


def compile_to_flow(
    source: Path,
    output: Path,
    target: TargetDescription,
    opt_level: str | None,
    options: CompilerOptions,
    extra_flags: Sequence[str] = (),
) -> FlowSummary:
    """Run IREE up to its flow IR and count.

    Args:
        source: What :func:`smartmem_mlir.iree.lower.emit_iree` made, as text.
        output: The flow IR, in generic form.
        target: The target.
        opt_level: Overrides the target's optimisation level.
        options: Time limit and where a failure leaves its reproducer.
        extra_flags: Flags of iree-compile beside the target's.

    Raises:
        CompilerError: iree-compile failed.
    """
    flags = [*compile_flags(target, opt_level), *extra_flags, "--compile-to=flow", "--mlir-print-op-generic"]
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
    fall_back: bool = False,
) -> BuiltModule:
    """Compile to a module.

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
        fall_back: Where iree-compile fails, try what `iree.fallback` knows.

    Raises:
        CompilerError: iree-compile failed; if several attempts did, this is about the first.
    """
    attempt = Attempt(opt_level or target.opt_level)
    first: CompilerError | None = None
    fallbacks: list[Fallback] = []
    while True:
        # Only the attempt that was asked for leaves a reproducer.
        used = options if first is None else replace(options, reproducer=workspace / "reproducer")
        try:
            built = _build_once(source, vmfb, workspace, target, attempt, used, progress, repair)
        except CompilerError as error:
            first = first or error
            following = attempt.following(error.what, source.read_text(), target) if fall_back else None
            if following is None or isinstance(error, TimeLimitError):
                raise first from None
            fallbacks.append(attempt.failed(error.what))
            progress(f"iree-compile failed at {attempt}, trying {following}")
            attempt = following
        else:
            if fallbacks:
                shutil.rmtree(options.reproducer, ignore_errors=True)
            return replace(built, fallbacks=tuple(fallbacks))


def _build_once(
    source: Path,
    vmfb: Path,
    workspace: Path,
    target: TargetDescription,
    attempt: Attempt,
    options: CompilerOptions,
    progress: Callable[[str], None],
    repair: bool,
) -> BuiltModule:
    """One attempt.

    IREE runs in parts, to its flow IR and from there, for Vulkan with a stop at the kernels' configurations: the IR
    that is counted is the IR that is compiled, and nothing is done twice.
    """
    progress("forming kernels")
    text = source.read_text()
    if (edited := attempt.edited(text)) != text:
        source = workspace / "edited.mlir"
        source.write_text(edited)
    flow_ir = workspace / "flow.mlir"
    flow = compile_to_flow(source, flow_ir, target, attempt.opt_level, options, attempt.flags)
    progress(f"compiling {flow.kernels} kernels")
    flags = [*compile_flags(target, attempt.opt_level), *attempt.flags]
    misaligned: list[str] = []
    if target.vulkan is None:
        run_iree_compile(flow_ir, vmfb, [*flags, "--compile-from=flow"], options)
    else:
        configured = workspace / "configured.mlir"
        run_iree_compile(
            flow_ir, configured, [*flags, "--compile-from=flow", f"--compile-to={STAGE}", *TEXT_FLAGS], options
        )
        text, misaligned = scalarize(configured.read_text(), repair)
        configured.write_text(text if "int64" in target.vulkan.compute else scalarize_i64(text))
        run_iree_compile(configured, vmfb, [*flags, f"--compile-from={STAGE}"], options)
    assumptions: CpuAssumptions | VulkanAssumptions
    repairs = repair_vmfb(vmfb) if repair and target.vulkan is not None else []
    if target.vulkan is not None:
        assumptions = vulkan_assumptions(vmfb, target, flow.largest_binding_bytes)
    else:
        assumptions = cpu_assumptions(flow_ir, target)
    return BuiltModule(
        vmfb=vmfb,
        flow=flow,
        assumptions=assumptions,
        repairs=tuple(repairs),
        misaligned=tuple(misaligned),
        attempt=attempt,
    )
