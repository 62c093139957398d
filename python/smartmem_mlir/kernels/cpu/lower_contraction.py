"""A contraction group as a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from mlir import ir

from smartmem_mlir.index_maps.expr import ZERO, Expr, dim
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.kernels.address_claims import Walk, claim_copy, claim_split, restricted, walks
from smartmem_mlir.kernels.addresses import LANE, ROW, split_address
from smartmem_mlir.kernels.cpu.emit import ContractionEmitter
from smartmem_mlir.kernels.cpu.kernel import Kernel
from smartmem_mlir.kernels.cpu.panels import panelled
from smartmem_mlir.kernels.cpu.plan import CpuVectors, KernelPlan, Storage, plan_contraction
from smartmem_mlir.kernels.cpu.row_blocks import RowBlocks, RowRead
from smartmem_mlir.kernels.cpu.staging import MOST_BYTES, StagedPlan, Windows, lay_out, stage, stage_rows, work_in_rows
from smartmem_mlir.kernels.groups import (
    arguments_of,
    is_argument,
    is_f32,
    operands_of,
    parameter,
    read_contraction,
    reads_after_sum,
)
from smartmem_mlir.transforms.claims import is_recorded
from smartmem_mlir.transforms.contraction_group import ContractionGroup, Read
from smartmem_mlir.transforms.group_claims import claim_contraction
from smartmem_mlir.transforms.padded_factors import padding_of, take_padding
from smartmem_mlir.transforms.view_ops import defining_op, read_view, shape_of, write_view


def contraction_kernel(op: ir.Operation, group: ContractionGroup, cpu: CpuVectors) -> Kernel | None:
    """The kernel of a group around a contraction; None when no plan fits.

    Args:
        op: The group.
        group: What it computes.
        cpu: What it is to run on.
    """
    if not all(is_f32(value.type) for value in (*op.operands, *op.results)):
        return None
    plan = plan_contraction(group, cpu, constant_rhs=parameter(op, group.rhs) is not None)
    if plan is None:
        return None
    return _kernel(op, plan, "1")


def padded_contraction_kernel(op: ir.Operation, group: ContractionGroup, cpu: CpuVectors) -> Kernel | None:
    """The kernel that pads its left factor itself; None where that is not padded for it alone, or no window fits.

    Args:
        op: The group; the padding moves into it.
        group: What it computes.
        cpu: What it is to run on.
    """
    (factor, *others) = group.lhs.reads
    if others or not is_argument(factor.value):
        return None
    number = ir.BlockArgument(factor.value).arg_number
    padding = padding_of(op.operands[number])
    plan = plan_contraction(group, cpu, constant_rhs=parameter(op, group.rhs) is not None)
    if padding is None or not is_f32(padding.source.type) or plan is None or plan.group.lhs.reads[0] != factor:
        return None
    if stage(plan) is None:
        return None
    take_padding(op, number, padding)
    padded = read_contraction(op)
    plan = None if padded is None else plan_contraction(padded, cpu, constant_rhs=parameter(op, padded.rhs) is not None)
    staged = None if plan is None else stage(plan)
    assert staged is not None, "the plan does not depend on who pads"
    return _staged_kernel(op, staged)


def _staged_kernel(op: ir.Operation, staged: StagedPlan) -> Kernel:
    """The kernel of a plan whose left factor is laid out window by window."""
    given = staged.given

    def in_rows(count: int) -> Kernel:
        again = stage_rows(given, count)
        assert again is not None, "other numbers of rows cost too much"
        return _staged_kernel(op, again)

    return replace(
        _kernel(op, staged.plan, f"windows of {staged.windows.rows}", staged),
        cost=staged.cost,
        beside=lambda count: _staged_kernel(op, stage(given, count) or staged),
        # What is padded is no other kernel's rows: a window has the neighbours of its pixels.
        rows=replace(_row_blocks(op, given), work=lambda count: work_in_rows(given, count), of=in_rows),
        stack=MOST_BYTES,
        staged={staged.plan.group.lhs.reads[0].value: staged.windows.bytes * staged.windows.blocks},
        claim=lambda: _claim(staged.plan, staged.windows),
    )


def _kernel(op: ir.Operation, plan: KernelPlan, blocks: str, staged: StagedPlan | None = None) -> Kernel:
    """The kernel of a plan; `blocks` tells those with other blocks apart."""
    # What the plan calls left and right may be the other way round.
    planned = plan.group
    scale = () if planned.scale is None else (planned.scale.read,)
    reads = (*planned.lhs.reads, planned.rhs, *scale, *reads_after_sum(planned))
    padded = None if staged is None else defining_op(planned.lhs.reads[0].value)
    source = () if padded is None else (padded.operands[0],)
    arguments = list(dict.fromkeys([*source, *arguments_of(reads)]))

    def operands() -> list[ir.Value]:
        found = operands_of(op, arguments)
        if plan.storage is not Storage.GIVEN:
            rhs = arguments.index(planned.rhs.value)
            found[rhs] = _pack(plan, found[rhs])
        return found

    def body(buffers: Sequence[ir.Value], ids: Sequence[ir.Value]) -> None:
        table = dict(zip([*arguments, planned.output.value], buffers, strict=True))
        if staged is not None and padded is not None:
            table[padded.results[0]] = lay_out(staged, read_view(padded), table[padded.operands[0]], ids[1])
        ContractionEmitter(plan, table).emit(ids[0], ids[1])

    return Kernel(
        op=op,
        stem=_stem(plan),
        variant=f"{plan.storage} {blocks}",
        work=float(plan.work),
        cost=plan.cost,
        workgroups=plan.workgroups,
        operands=operands,
        body=body,
        beside=lambda count: _kernel(op, plan.in_blocks(count), str(count)),
        rows=_row_blocks(op, plan),
        claim=lambda: _claim(plan),
    )


def _row_blocks(op: ir.Operation, plan: KernelPlan) -> RowBlocks:
    group, tiling = plan.group, plan.tiling
    whole = tuple(walks(tiling))
    scale = () if group.scale is None else (group.scale.read,)
    reads = [RowRead(op, whole, read) for read in (group.rhs, *scale, *reads_after_sum(group))]
    reads += [RowRead(op, part, read) for read, part in _parts(plan)]
    return RowBlocks(
        count=tiling.num_rows,
        written=RowRead(op, whole, group.output),
        reads=tuple(reads),
        work=lambda rows: plan.in_rows(rows).work_of(rows, tiling.num_panels),
        of=lambda rows: _kernel(op, plan.in_rows(rows), f"rows {rows}"),
    )


def _parts(plan: KernelPlan) -> Iterator[tuple[Read, tuple[Walk, ...]]]:
    """The parts of the left factor, each with the boxes in which it is read."""
    lhs, tiling = plan.group.lhs, plan.tiling
    if lhs.dimension is None:
        yield lhs.reads[0], tuple(walks(tiling))
        return
    axis = tiling.reductions.index(lhs.dimension)
    stops = [*lhs.starts[1:], tiling.extents[lhs.dimension]]
    for read, start, stop in zip(lhs.reads, lhs.starts, stops, strict=True):
        yield read, tuple(restricted(walk, axis, start, stop) for walk in walks(tiling))


def _claim(plan: KernelPlan, windows: Windows | None = None) -> None:
    if not is_recorded():
        return
    planned, tiling = plan.group, plan.tiling
    root = planned.root.op
    claim_contraction(planned)
    for (read, boxes), address in zip(_parts(plan), plan.lhs, strict=True):
        for walk in boxes:
            if windows is None:
                claim_split(root, walk, read, address)
                continue
            place = dim(ROW) // windows.rows * prod(windows.shape) + address.outer + address.inner
            place = place + dim(LANE) * address.lanes
            claim_copy(root, walk, read, place, windows.view(shape_of(read.value)))
    for walk in walks(tiling):
        if plan.storage is Storage.GIVEN:
            claim_split(root, walk, planned.rhs, plan.rhs)
        else:
            place = plan.rhs.outer + plan.rhs.inner + dim(LANE) * plan.rhs.lanes
            claim_copy(root, walk, planned.rhs, place, _packed(plan))
        if planned.scale is not None and plan.scale is not None:
            claim_split(root, walk, planned.scale.read, plan.scale)
        for read in (*reads_after_sum(planned), planned.output):
            after = split_address(read.address, tiling)
            assert after is not None, "the plan has checked every address"
            claim_split(root, walk, read, after)


def _stem(plan: KernelPlan) -> str:
    tiling = plan.tiling
    reduction = "x".join(map(str, tiling.reduction_extents))
    return f"contraction_{tiling.num_rows}x{tiling.num_panels * tiling.panel_width}x{reduction}"


def _pack(plan: KernelPlan, weight: ir.Value) -> ir.Value:
    """The right factor as the plan stores it, as a view: of a weight, computed when the model is compiled."""
    return write_view(_packed(plan), [weight], weight.type.element_type)


def _packed(plan: KernelPlan) -> View:
    """What the right factor as the plan stores it holds."""
    tiling, group = plan.tiling, plan.group
    source = shape_of(group.rhs.value)
    if plan.storage is Storage.ROWS:
        order = (*tiling.panels, *tiling.reductions, tiling.lane)
        place = {d: dim(i) for i, d in enumerate(order)}
        copied = [tiling.extents[d] for d in order]
        by_dim = [place.get(d, ZERO) for d in range(len(tiling.extents))]
        copied_from = [expr.substitute(by_dim) for expr in group.rhs.access]
        return View.mapped(copied, source, copied_from)
    outer = [tiling.extents[d] for d in tiling.panels]
    count, width, extent = tiling.panels_per_lane_range, tiling.panel_width, tiling.extents[tiling.lane]
    shape = (*outer, count, *tiling.reduction_extents, width)
    where: list[Expr] = [ZERO] * len(tiling.extents)
    for i, d in enumerate(tiling.panels):
        where[d] = dim(i)
    where[tiling.lane] = dim(len(outer)) * width + dim(len(shape) - 1)
    for i, d in enumerate(tiling.reductions):
        where[d] = dim(len(outer) + 1 + i)
    exprs = tuple(expr.substitute(where) for expr in group.rhs.access)
    return panelled(shape, source, exprs, len(outer), extent - (count - 1) * width)
