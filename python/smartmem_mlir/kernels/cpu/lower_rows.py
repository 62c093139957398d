"""A row group becomes an executable of ours and a dispatch of it."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from smartmem_mlir.kernels.cpu.row_plan import RowPlan
from smartmem_mlir.kernels.cpu.rows import RowEmitter
from smartmem_mlir.kernels.executable import add_executable, dispatch
from smartmem_mlir.transforms.row_group import RowGroup, read_row_group
from smartmem_mlir.transforms.structured import is_structured


def read_rows(op: ir.Operation) -> RowGroup | None:
    """What a `smartmem.group` computes; None when it is no computation over rows."""
    members = [inner.operation for inner in op.regions[0].blocks[0].operations if is_structured(inner.operation)]
    return read_row_group(members) if members else None


def row_stem(plan: RowPlan) -> str:
    """Name of the kernel, perhaps not free."""
    return f"rows_{plan.tiling.num_rows}x{plan.columns}"


def lower_rows(op: ir.Operation, plan: RowPlan, module: ir.Block, name: str, is_new: bool) -> None:
    """Replaces the group by a dispatch.

    Args:
        op: The group.
        plan: Its plan.
        module: The module's block.
        name: Symbol of the kernel.
        is_new: Whether the module does not have it yet.
    """
    arguments = list(
        dict.fromkeys(
            read.value
            for step in plan.group.steps
            for read in step.arguments
            if not isinstance(read, int) and read in plan.reads
        )
    )
    with ir.InsertionPoint(op), op.location:
        operands = [op.operands[ir.BlockArgument(argument).arg_number] for argument in arguments]
        if is_new:

            def body(buffers: Sequence[ir.Value], ids: Sequence[ir.Value]) -> None:
                table = dict(zip([*arguments, plan.group.output.value], buffers, strict=True))
                RowEmitter(plan, table).emit(ids[0])

            tensors = [operand.type for operand in operands] + [op.results[0].type]
            add_executable(module, name, tensors, (plan.workgroups, 1), body)
        result = dispatch(name, operands, op.results[0].type)
    op.results[0].replace_all_uses_with(result)
    op.erase()
