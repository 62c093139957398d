"""A row group as a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlir import ir

from smartmem_mlir.kernels.address_claims import claim_split, walks
from smartmem_mlir.kernels.cpu.blocks import price
from smartmem_mlir.kernels.cpu.kernel import Kernel
from smartmem_mlir.kernels.cpu.packed_rows import PackedRowEmitter
from smartmem_mlir.kernels.cpu.plan import CpuVectors
from smartmem_mlir.kernels.cpu.row_blocks import RowBlocks, RowRead
from smartmem_mlir.kernels.cpu.row_plan import RowPlan, plan_rows
from smartmem_mlir.kernels.cpu.rows import RowEmitter
from smartmem_mlir.kernels.groups import operands_of
from smartmem_mlir.transforms.claims import is_recorded
from smartmem_mlir.transforms.group_claims import claim_rows
from smartmem_mlir.transforms.map_group import is_copy
from smartmem_mlir.transforms.row_group import Kind, RowGroup
from smartmem_mlir.transforms.view_ops import is_view


def row_kernel(op: ir.Operation, group: RowGroup, cpu: CpuVectors) -> Kernel | None:
    """The kernel of a group that goes over rows; None when no plan fits."""
    plan = plan_rows(group, cpu)
    if plan is None:
        return None
    return _kernel(op, plan)


def _claim(plan: RowPlan) -> None:
    group = plan.group
    if is_recorded():
        claim_rows(group)
        for walk in walks(plan.tiling, plan.refined, group.extents):
            for read, address in (*plan.reads.items(), (group.output, plan.output)):
                claim_split(group.members[0], walk, read, address)


def _kernel(op: ir.Operation, plan: RowPlan) -> Kernel:
    arguments = list(
        dict.fromkeys(
            read.value
            for step in plan.group.steps
            for read in step.arguments
            if not isinstance(read, int) and read in plan.reads
        )
    )

    def body(buffers: Sequence[ir.Value], ids: Sequence[ir.Value]) -> None:
        table = dict(zip([*arguments, plan.group.output.value], buffers, strict=True))
        emitter = RowEmitter if plan.pack == 1 else PackedRowEmitter
        emitter(plan, table).emit(ids[0])

    reduces = any(step.kind is Kind.REDUCE for step in plan.group.steps)
    kernel = Kernel(
        op=op,
        stem=f"{'rows' if reduces else 'map'}_{plan.tiling.num_rows}x{plan.columns}",
        variant=str(plan.block_rows),
        work=plan.work_of(plan.tiling.num_rows),
        cost=price(plan.workgroups, plan.work_of(plan.block_rows)),
        stack=4 * len(plan.stored) * plan.columns,
        workgroups=(plan.workgroups, 1),
        operands=lambda: operands_of(op, arguments),
        body=body,
        beside=lambda _: kernel,
        claim=lambda: _claim(plan),
        rows=_row_blocks(op, plan) if plan.pack == 1 else None,
        # IREE computes the rest as well, and joins it to what it computes besides.
        alone=reduces or (bool(plan.group.border) and not all(is_copy(op) or is_view(op) for op in plan.group.members)),
    )
    return kernel


def _row_blocks(op: ir.Operation, plan: RowPlan) -> RowBlocks:
    boxes = tuple(walks(plan.tiling, plan.refined, plan.group.extents))
    return RowBlocks(
        count=plan.tiling.num_rows,
        written=RowRead(op, boxes, plan.group.output),
        reads=tuple(RowRead(op, boxes, read) for read in plan.reads),
        work=plan.work_of,
        of=lambda rows: _kernel(op, replace(plan, block_rows=rows)),
    )
