"""A group that a generator has taken: everything that is needed to run it, alone or in one launch with others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mlir import ir

from smartmem_mlir.kernels.cpu.row_blocks import RowBlocks
from smartmem_mlir.kernels.executable import Body


@dataclass(frozen=True)
class Kernel:
    """One group, planned.

    Args:
        op: The `smartmem.group`, of one result.
        stem: A symbol that says what is computed, perhaps not free.
        variant: What tells kernels of equal groups apart.
        work: Of the whole kernel, in multiply-adds.
        cost: Of the kernel as a launch of its own, see :func:`smartmem_mlir.kernels.cpu.blocks.price`.
        workgroups: Along x and y.
        operands: Makes what the kernel reads, at the insertion point.
        body: Writes the kernel: given the memory of its operands and of its result, and a workgroup's indices.
        beside: The same kernel with blocks for running beside others: the number of kernels in the launch.
        rows: The same kernel cut into blocks of rows; None when it is not known which rows it computes.
        alone: Whether it deserves a launch of its own.
        stack: Bytes of it that the kernel takes.
        scratch: Elements of memory, of all workgroups together, that the body is given after that of the result.
        staged: Bytes that all workgroups together copy to their stacks of a view in the group, by the view's result.
        claim: Claims that the group is read rightly and that the kernel's addresses are the group's. For a kernel that
            is to run: what is planned and dropped needs no proof.
    """

    op: ir.Operation
    stem: str
    variant: str
    work: float
    cost: float
    workgroups: tuple[int, int]
    operands: Callable[[], list[ir.Value]]
    body: Body
    beside: Callable[[int], Kernel]
    rows: RowBlocks | None = None
    alone: bool = True
    stack: int = 0
    scratch: int = 0
    staged: Mapping[ir.Value, int] = field(default_factory=dict)
    claim: Callable[[], None] = lambda: None
