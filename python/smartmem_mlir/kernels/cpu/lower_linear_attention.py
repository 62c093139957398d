"""A group of attention without a softmax as a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from smartmem_mlir.kernels.cpu.attention_plan import DEPTH, KEY, OUTER, ROW, VALUE
from smartmem_mlir.kernels.cpu.blocks import price
from smartmem_mlir.kernels.cpu.kernel import Kernel
from smartmem_mlir.kernels.cpu.linear_attention import LinearAttentionEmitter
from smartmem_mlir.kernels.cpu.linear_attention_plan import plan_linear_attention
from smartmem_mlir.kernels.cpu.lower_attention import source_operands
from smartmem_mlir.kernels.cpu.plan import CpuVectors
from smartmem_mlir.kernels.groups import is_f32
from smartmem_mlir.transforms.linear_attention_claims import claim_linear_attention
from smartmem_mlir.transforms.linear_attention_group import LinearAttentionGroup


def linear_attention_kernel(op: ir.Operation, group: LinearAttentionGroup, cpu: CpuVectors) -> Kernel | None:
    """The kernel of a group that is an attention without a softmax; None when no plan fits."""
    if not all(is_f32(value.type) for value in (*op.operands, *op.results)):
        return None
    plan = plan_linear_attention(group, cpu)
    if plan is None:
        return None
    claim_linear_attention(group)

    def body(buffers: Sequence[ir.Value], ids: Sequence[ir.Value]) -> None:
        table = dict(zip(plan.sources, buffers[:-1], strict=True))
        LinearAttentionEmitter(plan, table, buffers[-1]).emit(ids[0])

    shape = "x".join(str(plan.counts[d]) for d in (OUTER, ROW, KEY, DEPTH, VALUE))
    kernel = Kernel(
        op=op,
        stem=f"linear_attention_{shape}",
        variant="",
        work=plan.work * plan.counts[OUTER],
        cost=price(plan.workgroups, plan.work * plan.block_outer),
        stack=plan.stack,
        workgroups=(plan.workgroups, 1),
        operands=lambda: source_operands(op, plan.sources),
        body=body,
        beside=lambda _: kernel,
    )
    return kernel
