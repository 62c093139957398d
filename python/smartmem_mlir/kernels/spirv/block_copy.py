"""The left factor's way to cooperative matrices: its rows, in blocks, into workgroup memory."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from smartmem_mlir.index_maps.expr import Expr
from smartmem_mlir.kernels.addresses import FIRST_REDUCTION, PANEL, ROW
from smartmem_mlir.kernels.spirv import integers
from smartmem_mlir.kernels.spirv.cooperative_plan import BLOCK, MatrixPlan, eighth, innermost
from smartmem_mlir.kernels.spirv.shader import Thread
from smartmem_mlir.kernels.spirv.storage import Blocks


class BlockCopy:
    """What a thread copies in each trip: all threads of a workgroup together bring what its subgroups multiply.

    In workgroup memory stand, for each part of the sum, the rows of the workgroup's tile, each with the terms of one
    trip.

    Args:
        plan: The kernel.
        memory: The left factor.
        thread: The invocation.
        row: First row of the workgroup's tile.
        panel: First panel of its range of lanes.
    """

    def __init__(self, plan: MatrixPlan, memory: Blocks, thread: Thread, row: ir.Value, panel: ir.Value) -> None:
        self._plan = plan
        self._memory = memory
        self._thread = thread
        address = plan.lhs[0].address
        split = innermost(address, plan.tiling)
        assert split is not None, "the plan has checked it"
        outer, self._inner = eighth(address.outer), eighth(split[1])
        rows, _ = plan.extents
        self.part = integers.divide(thread.local, plan.copiers)
        """The part of the sum that the thread copies for."""
        first = integers.remainder(thread.local, plan.copiers)
        self._bases, self._targets = [], []
        for i in range(rows * plan.row_blocks // plan.copiers):
            number = integers.add(first, i * plan.copiers)
            column, inside = integers.remainder(number, plan.row_blocks), integers.divide(number, plan.row_blocks)
            base = integers.evaluate(outer, {ROW: integers.add(row, inside), PANEL: panel})
            self._bases.append(integers.add(base, column))
            at = integers.add(integers.scale(self.part, rows), inside)
            self._targets.append(integers.add(integers.scale(at, plan.row_pitch), column))

    def load(self, trips: Sequence[ir.Value]) -> list[ir.Value]:
        """A trip's blocks.

        Args:
            trips: Of each loop over the sum, for the thread's part of it.
        """
        *outer, innermost_trip = trips
        moved = integers.scale(innermost_trip, self._plan.row_blocks)
        if self._inner != Expr(0):
            values = {FIRST_REDUCTION + i: trip for i, trip in enumerate(outer)}
            moved = integers.add(moved, integers.evaluate(self._inner, values))
        return [self._memory.load(integers.add(base, moved)) for base in self._bases]

    def store(self, blocks: Sequence[ir.Value]) -> None:
        """Writes them where all can see them, once nobody needs the last trip's any more."""
        self._thread.barrier()
        for at, block in zip(self._targets, blocks, strict=True):
            self._thread.share(at, block)
        self._thread.barrier()

    def first_block(self, tile: ir.Value, split: ir.Value) -> ir.Value:
        """Where a subgroup's rows begin.

        Args:
            tile: Its tile in the workgroup, counted along rows.
            split: Its part of the sum.
        """
        rows, _ = self._plan.subgroup_extents
        first = integers.add(integers.scale(split, self._plan.extents[0]), integers.scale(tile, rows))
        return integers.scale(first, self._plan.row_pitch)

    def matrices(self, number: int) -> list[int]:
        """Where a subgroup's matrices of this number in the trip begin, from its first block."""
        matrices = self._plan.matrices
        blocks = matrices.terms // BLOCK
        return [i * matrices.rows * self._plan.row_pitch + number * blocks for i in range(self._plan.tile[0])]
