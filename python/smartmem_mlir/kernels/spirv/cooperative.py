"""The code of a contraction by cooperative matrices: subgroups sum, threads do what follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlir import ir
from mlir.dialects import arith

from smartmem_mlir.kernels.spirv import integers
from smartmem_mlir.kernels.spirv.block_copy import BlockCopy
from smartmem_mlir.kernels.spirv.border import write_border
from smartmem_mlir.kernels.spirv.contraction import ContractionShader
from smartmem_mlir.kernels.spirv.control import loop, when
from smartmem_mlir.kernels.spirv.cooperative_matrices import MatrixMemory, matrix_unit
from smartmem_mlir.kernels.spirv.cooperative_plan import MatrixPlan
from smartmem_mlir.kernels.spirv.shader import Thread
from smartmem_mlir.kernels.spirv.storage import Binding, Blocks
from smartmem_mlir.kernels.spirv.tile_sums import TileSums
from smartmem_mlir.kernels.spirv.vectors import WIDTH
from smartmem_mlir.transforms.view_ops import shape_of


class CooperativeShader(ContractionShader):
    """Writes the body of a kernel.

    Args:
        plan: The kernel.
        bindings: The memory of each tensor that it reads or writes.
    """

    def __init__(self, plan: MatrixPlan, bindings: Mapping[ir.Value, Binding]) -> None:
        super().__init__(plan, bindings)
        self._matrix_plan = plan

    def emit(self, thread: Thread) -> None:
        """Writes it at the insertion point."""
        plan = self._matrix_plan
        tiling, (rows, lanes) = plan.tiling, plan.extents
        x, y = thread.workgroup
        count = tiling.panels_per_lane_range
        self._range = integers.scale(integers.divide(x, plan.blocks), count)
        panel = integers.add(self._range, integers.scale(integers.remainder(x, plan.blocks), lanes // WIDTH))
        wanted = integers.scale(y, rows)
        partial = tiling.num_rows % rows != 0
        # The last tile begins earlier than it would, and does not write the rows of the one before it.
        row = integers.at_most(wanted, tiling.num_rows - rows) if partial else wanted
        self._stored_from = wanted if partial else None
        self._in_range = None
        self._lanes = [integers.constant(lane) for lane in range(WIDTH)]
        self._sum_tiles(thread, row, panel)
        thread.barrier()
        self._finish_tile(thread, row, panel)
        output = plan.group.output.value
        write_border(
            thread, plan.group.border, shape_of(output), self._bindings[output], plan.workgroups, plan.invocations
        )

    def _sum_tiles(self, thread: Thread, row: ir.Value, panel: ir.Value) -> None:
        """Each subgroup's sums, to workgroup memory."""
        plan = self._matrix_plan
        (_, lanes), (_, across), (_, beside) = plan.subgroup_extents, plan.tile, plan.subgroups
        left, right = self._bindings[plan.lhs[0].value], self._bindings[plan.rhs.value]
        assert isinstance(left, Blocks), "the left factor is copied by blocks"
        assert isinstance(right, Blocks), "pointers to blocks say that matrices are aligned"
        memories = MatrixMemory(None, plan.row_pitch), MatrixMemory(right, plan.right.pitch, plan.right.by_columns)
        unit = matrix_unit(plan.matrices, thread, *memories)
        number = unit.subgroup
        split, tile = integers.remainder(number, plan.splits), integers.divide(number, plan.splits)
        panel = integers.add(panel, integers.scale(integers.remainder(tile, beside), lanes // WIDTH))
        copy = BlockCopy(plan, left, thread, row, self._range)
        sums = TileSums(plan, unit, copy, split, integers.divide(tile, beside), panel).emit()
        # Sums go where others may still read blocks.
        thread.barrier()
        first = integers.scale(number, plan.region)
        pitch = lanes // WIDTH
        for i, total in enumerate(sums):
            at = (i // across) * plan.matrices.rows * pitch + (i % across) * plan.matrices.lanes // WIDTH
            unit.store(total, integers.add(first, at), pitch)

    def _finish_tile(self, thread: Thread, row: ir.Value, panel: ir.Value) -> None:
        """What follows the sum, for the vectors of the workgroup's tile, divided among its threads."""
        plan = self._matrix_plan
        rows, lanes = plan.extents
        vectors = rows * lanes // WIDTH
        each = -(-vectors // plan.invocations)

        def finish(number: ir.Value) -> None:
            here, column = integers.divide(number, lanes // WIDTH), integers.remainder(number, lanes // WIDTH)
            total = self._total(thread, here, column)
            self._panel = integers.add(panel, column)
            self._finish(integers.add(row, here), total)

        def body(trip: ir.Value, _: Sequence[ir.Value]) -> list[ir.Value]:
            number = integers.add(thread.local, integers.scale(trip, plan.invocations))
            partial = vectors % plan.invocations != 0
            when([integers.less(number, vectors)] if partial else [], lambda: finish(number))
            return []

        loop(each, body, [])

    def _total(self, thread: Thread, row: ir.Value, column: ir.Value) -> ir.Value:
        """A vector of the workgroup's tile, from all parts of its sum."""
        plan = self._matrix_plan
        rows, lanes = plan.subgroup_extents
        tile = integers.add(
            integers.scale(integers.divide(row, rows), plan.subgroups[1]), integers.divide(column, lanes // WIDTH)
        )
        inside = integers.add(
            integers.scale(integers.remainder(row, rows), lanes // WIDTH), integers.remainder(column, lanes // WIDTH)
        )
        at = integers.add(integers.scale(tile, plan.splits * plan.region), inside)
        total = thread.shared(at)
        for part in range(1, plan.splits):
            total = arith.addf(total, thread.shared(integers.add(at, part * plan.region)))
        return total
