"""An attention group becomes an executable of ours and a dispatch of it."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from smartmem_mlir.kernels.cpu.attention import AttentionEmitter
from smartmem_mlir.kernels.cpu.attention_plan import AttentionPlan
from smartmem_mlir.kernels.executable import add_executable, dispatch
from smartmem_mlir.transforms.attention_group import AttentionGroup, read_attention_group
from smartmem_mlir.transforms.structured import is_structured
from smartmem_mlir.transforms.view_ops import write_view


def read_attention(op: ir.Operation) -> AttentionGroup | None:
    """What a `smartmem.group` computes; None when it is no attention."""
    members = [inner.operation for inner in op.regions[0].blocks[0].operations]
    return read_attention_group([m for m in members if is_structured(m) or m.name == "linalg.softmax"])


def _operands(op: ir.Operation, plan: AttentionPlan) -> list[ir.Value]:
    """What the kernel reads, created at the insertion point where it is a view."""
    operands = []
    for source in plan.sources:
        operand = op.operands[ir.BlockArgument(source.value).arg_number]
        view = source.view
        operands.append(operand if view is None else write_view(view, [operand], operand.type.element_type))
    return operands


def _add_kernel(module: ir.Block, name: str, plan: AttentionPlan, tensors: Sequence[ir.Type]) -> None:
    """Adds the kernel.

    Args:
        module: The module's block.
        name: A symbol that is free.
        plan: What to compute.
        tensors: Types of what it reads, then of the result.
    """

    def body(buffers: Sequence[ir.Value], ids: Sequence[ir.Value]) -> None:
        table = dict(zip(plan.sources, buffers[:-1], strict=True))
        AttentionEmitter(plan, table, buffers[-1]).emit(ids[0], ids[1])

    add_executable(module, name, tensors, plan.workgroups, body)


def lower_attention(op: ir.Operation, plan: AttentionPlan, module: ir.Block, name: str, is_new: bool) -> None:
    """Replaces the group by a dispatch.

    Args:
        op: The group.
        plan: Its plan.
        module: The module's block.
        name: Symbol of the kernel.
        is_new: Whether the module does not have it yet.
    """
    with ir.InsertionPoint(op), op.location:
        operands = _operands(op, plan)
        if is_new:
            _add_kernel(module, name, plan, [*(operand.type for operand in operands), op.results[0].type])
        result = dispatch(name, operands, op.results[0].type)
    op.results[0].replace_all_uses_with(result)
    op.erase()


def attention_stem(plan: AttentionPlan) -> str:
    """A symbol that says what the kernel computes."""
    outer, rows, keys, depth, values = plan.counts
    return f"attention_{outer}x{rows}x{keys}x{depth}x{values}"
