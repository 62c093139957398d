"""An attention group as a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir

from smartmem_mlir.kernels.cpu.attention import AttentionEmitter
from smartmem_mlir.kernels.cpu.attention_plan import SCRATCH_BYTES, Source, plan_attention
from smartmem_mlir.kernels.cpu.blocks import price
from smartmem_mlir.kernels.cpu.kernel import Kernel
from smartmem_mlir.kernels.cpu.plan import CpuVectors
from smartmem_mlir.kernels.groups import is_f32
from smartmem_mlir.transforms.attention_group import AttentionGroup
from smartmem_mlir.transforms.group_claims import claim_attention
from smartmem_mlir.transforms.view_ops import write_view


def source_operands(op: ir.Operation, sources: Sequence[Source]) -> list[ir.Value]:
    """What a kernel reads, created at the insertion point where it is a view."""
    operands = []
    for source in sources:
        operand = op.operands[ir.BlockArgument(source.value).arg_number]
        view = source.view
        operands.append(operand if view is None else write_view(view, [operand], operand.type.element_type))
    return operands


def attention_kernel(op: ir.Operation, group: AttentionGroup, cpu: CpuVectors) -> Kernel | None:
    """The kernel of a group that is an attention; None when no plan fits."""
    plan = plan_attention(group, cpu) if all(is_f32(value.type) for value in (*op.operands, *op.results)) else None
    if plan is None:
        return None
    claim_attention(group)
    outer, rows, keys, depth, values = plan.counts

    def body(buffers: Sequence[ir.Value], ids: Sequence[ir.Value]) -> None:
        table = dict(zip(plan.sources, buffers[:-1], strict=True))
        AttentionEmitter(plan, table, buffers[-1]).emit(ids[0], ids[1])

    kernel = Kernel(
        op=op,
        stem=f"attention_{outer}x{rows}x{keys}x{depth}x{values}",
        variant="",
        work=float(outer * rows * keys * (depth + values)),
        cost=price(prod(plan.workgroups), outer * rows * keys * (depth + values) / prod(plan.workgroups)),
        stack=SCRATCH_BYTES,
        workgroups=plan.workgroups,
        operands=lambda: source_operands(op, plan.sources),
        body=body,
        beside=lambda _: kernel,
    )
    return kernel
