"""How results look on a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from smartmem_mlir.api import CompiledModel, VerifyResult
from smartmem_mlir.iree.assumptions import CpuAssumptions, VulkanAssumptions
from smartmem_mlir.iree.flow.summary import FlowSummary, ImageTraffic
from smartmem_mlir.layouts.decision import LayoutDecision
from smartmem_mlir.layouts.memory import TensorMemory
from smartmem_mlir.report.memories import in_buffers, in_memory
from smartmem_mlir.report.proofs import Proofs
from smartmem_mlir.report.schema import Report

_out = Console(highlight=False)
_err = Console(stderr=True, highlight=False)


def note(text: str) -> None:
    """A remark on stderr, apart from the results."""
    _err.print(text, markup=False, style="dim")


def size(count: int) -> str:
    """Bytes for people: three significant digits, decimal units."""
    value, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"


def print_compiled(compiled: CompiledModel) -> None:
    """What `compile` wrote."""
    report = compiled.report
    kind = "plain IREE" if report.baseline else f"pipeline '{report.pipeline}'"
    _out.print(f"{report.source.name} for {report.target.name} ({report.opt_level}, {kind})", markup=False)
    _out.print(_counts(report.flow), markup=False, soft_wrap=True)
    for line in memory_lines(report.memories):
        _out.print(line, markup=False, soft_wrap=True)
    _out.print(f"assumes {_assumptions(report.assumptions)}", markup=False, soft_wrap=True)
    _print_mended(report)
    _out.print(f"wrote {compiled.path}", markup=False, soft_wrap=True)


def _print_mended(report: Report) -> None:
    """What is right only because it was mended, and what is wrong because it was not."""
    superfluous = sum(repair.before != repair.after for repair in report.repairs)
    raced = sum(repair.barriers > 0 for repair in report.repairs)
    if superfluous:
        _out.print(f"{superfluous} Vulkan kernels had threads that all did the same: one is left", markup=False)
    if raced:
        _out.print(f"{raced} Vulkan kernels had threads that met in memory: they got barriers", markup=False)
    if report.misaligned and report.repaired:
        _out.print(
            f"{len(report.misaligned)} Vulkan kernels would be vectorised wrongly: they are scalar", markup=False
        )
    elif report.misaligned:
        names = ", ".join(report.misaligned)
        _out.print(
            f"warning: results may be wrong: IREE vectorises wrongly, and nothing was mended, in {names}",
            markup=False,
            soft_wrap=True,
        )


def print_proofs(proofs: Proofs) -> None:
    """What `check` proved."""
    _out.print(f"proved: {proofs.rewrites} rewrites rest on {proofs.claims} claims, all of which hold", markup=False)


def print_flow(compiled: CompiledModel) -> None:
    """The kernels of a module: sums first, then each kernel that only moves data."""
    report, flow = compiled.report, compiled.report.flow
    _out.print(
        f"{report.source.name} for {report.target.name}" + (" (plain IREE)" if report.baseline else ""), markup=False
    )
    _out.print(_counts(flow), markup=False, soft_wrap=True)
    if flow.unknown_kernels:
        _out.print(f"{flow.unknown_kernels} kernels have sizes that depend on the data; not in the sums", markup=False)
    for copy in flow.copies:
        _out.print(f"outside kernels: {copy.count} x {copy.operation}, {size(copy.bytes)}", markup=False)
    if flow.load_entries or flow.load_copies:
        calls = sum(kernel.calls for kernel in flow.load_entries)
        copies = sum(copy.count for copy in flow.load_copies)
        _out.print(f"once at load: {calls} kernels, {copies} copies", markup=False)
    for decision in report.layouts:
        _out.print(describe_layouts(decision), markup=False, soft_wrap=True)
    _out.print(f"assumes {_assumptions(report.assumptions)}", markup=False, soft_wrap=True)
    moving = sorted(
        (kernel for kernel in flow.entries if kernel.moves_data),
        key=lambda kernel: kernel.calls * kernel.bytes_per_call,
        reverse=True,
    )
    if not moving:
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("data-movement kernel", overflow="fold")
    for column in ("calls", "read", "written", "in all"):
        table.add_column(column, justify="right")
    for kernel in moving:
        table.add_row(
            kernel.name,
            str(kernel.calls),
            _known_size(kernel.read_bytes),
            _known_size(kernel.written_bytes),
            size(kernel.calls * kernel.bytes_per_call),
        )
    _out.print(table)


def memory_lines(memories: tuple[TensorMemory, ...]) -> list[str]:
    """Where the tensors of generated shaders are, and what keeps some in buffers: a line each; none without shaders."""
    if not memories:
        return []
    where = "; ".join(_amount(name, row) for name, row in in_memory(memories).items())
    why = "; ".join(_amount(name, row) for name, row in in_buffers(memories).items())
    return [f"tensors of shaders: {where}", *([f"in buffers because: {why}"] if why else [])]


def _amount(name: str, row: dict[str, int]) -> str:
    return f"{name} {row['tensors']} ({size(row['bytes'])})"


def describe_layouts(decision: LayoutDecision) -> str:
    """How layouts were chosen, in a line."""
    proof = {
        "optimal": "proved the least",
        "feasible": f"at most {decision.gap:.1%} above the least",
        "rule": "by the paper's rule",
    }[decision.status]
    reason = f" ({decision.reason})" if decision.reason else ""
    return (
        f"layouts: {decision.permuted} of {decision.tensors} tensors in another order than written, "
        f"modelled {decision.objective_ns / 1e6:.3g} ms, {proof}{reason}; by the paper's rule "
        f"{decision.paper_ns / 1e6:.3g} ms, as written {decision.written_ns / 1e6:.3g} ms; {decision.seconds:.1f} s"
    )


def print_outputs(outputs: dict[str, Any], seconds: float) -> None:
    """A line for each output of a run."""
    for name, values in outputs.items():
        shape = "x".join(map(str, (*values.shape, values.dtype)))
        if values.size and values.dtype.kind == "f":
            summary = f"min {values.min():.6g}, max {values.max():.6g}, mean {values.mean(dtype='float64'):.6g}"
        elif values.size:
            summary = f"min {values.min()}, max {values.max()}"
        else:
            summary = "empty"
        _out.print(f"{name}: {shape}: {summary}", markup=False, soft_wrap=True)
    note(f"{seconds:.2f} s with loading")


def print_verification(result: VerifyResult) -> None:
    """A row for each output and seed, then the verdict."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("output", overflow="fold")
    for column in ("seed", "max abs", "relative L2", "top-1"):
        table.add_column(column, justify="right")
    table.add_column("")
    for seed, differences in result.by_seed.items():
        for difference in differences:
            table.add_row(
                difference.output,
                str(seed),
                f"{difference.max_abs:.2e}",
                f"{difference.relative_l2:.2e}",
                "" if difference.top1 is None else f"{difference.top1:.1%}",
                difference.why or "matches",
            )
    _out.print(table)
    verdict = "matches" if result.matches else "DIFFERS FROM"
    _out.print(f"{verdict} {result.reference} on {result.device} (tolerance {result.tolerance:g})", markup=False)


def _counts(flow: FlowSummary) -> str:
    return (
        f"{flow.kernels} kernels, {flow.movement_kernels} of them data movement; "
        f"{size(flow.total_bytes)} read and written, {size(flow.movement_bytes)} of them by data movement"
        + (f"; {_images(flow.images)}" if flow.images else "")
    )


def _images(images: ImageTraffic) -> str:
    activations = images.activation_image_bytes / max(1, images.activation_bytes)
    weights = images.weight_image_bytes / max(1, images.weight_bytes)
    return f"in images {activations:.0%} of the bytes of activations and {weights:.0%} of those of weights"


def _assumptions(assumptions: CpuAssumptions | VulkanAssumptions) -> str:
    if isinstance(assumptions, CpuAssumptions):
        return f"{assumptions.architecture} with {len(assumptions.features)} CPU features"
    subgroup = (
        "any subgroup size" if assumptions.subgroup_size == "any" else f"subgroups of {assumptions.subgroup_size}"
    )
    capabilities = [name for name in assumptions.capabilities if name not in ("Shader", "Matrix")]
    parts = [
        subgroup,
        f"workgroups of up to {assumptions.workgroup_invocations}",
        f"{size(assumptions.shared_memory_bytes)} of shared memory",
        *capabilities,
    ]
    return ", ".join(parts)


def _known_size(count: int | None) -> str:
    return "?" if count is None else size(count)
