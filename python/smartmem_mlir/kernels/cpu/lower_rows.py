"""A row group as a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from smartmem_mlir.kernels.address_claims import claim_split, walks
from smartmem_mlir.kernels.cpu.kernel import Kernel
from smartmem_mlir.kernels.cpu.plan import CpuVectors
from smartmem_mlir.kernels.cpu.row_plan import WORK_PER_ELEMENT, plan_rows
from smartmem_mlir.kernels.cpu.rows import RowEmitter
from smartmem_mlir.transforms.claims import is_recorded
from smartmem_mlir.transforms.group_claims import claim_rows
from smartmem_mlir.transforms.row_group import RowGroup


def row_kernel(op: ir.Operation, group: RowGroup, cpu: CpuVectors) -> Kernel | None:
    """The kernel of a group that goes over rows; None when no plan fits."""
    plan = plan_rows(group, cpu)
    if plan is None:
        return None
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
        RowEmitter(plan, table).emit(ids[0])

    if is_recorded():
        claim_rows(group)
        for walk in walks(plan.tiling, plan.refined, group.extents):
            for read, address in (*plan.reads.items(), (group.output, plan.output)):
                claim_split(group.members[0], walk, read, address)
    kernel = Kernel(
        op=op,
        stem=f"rows_{plan.tiling.num_rows}x{plan.columns}",
        variant="",
        work=float(plan.tiling.num_rows * plan.columns * WORK_PER_ELEMENT),
        stack=4 * len(plan.stored) * plan.columns,
        workgroups=(plan.workgroups, 1),
        operands=lambda: [op.operands[ir.BlockArgument(argument).arg_number] for argument in arguments],
        body=body,
        beside=lambda _: kernel,
    )
    return kernel
