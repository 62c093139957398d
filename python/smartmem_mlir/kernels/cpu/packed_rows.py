"""The body of a kernel over rows that share vectors: lane k of a pack belongs to its row k // width."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from mlir import ir
from mlir.dialects import memref, vector

from smartmem_mlir.kernels.bodies import evaluate
from smartmem_mlir.kernels.cpu.lanes import Combine, Part, add, cut, splat, vector_type
from smartmem_mlir.kernels.cpu.rows import Row, RowEmitter
from smartmem_mlir.kernels.functions import FUNCTIONS
from smartmem_mlir.transforms.contraction_group import Read
from smartmem_mlir.transforms.row_group import RowStep
from smartmem_mlir.transforms.view_code import index_value
from smartmem_mlir.transforms.view_ops import splat_constant


class PackedRowEmitter(RowEmitter):
    """Writes one kernel at the insertion point, the start of a function.

    A row's numbers, its mean for instance, are vectors in which each lane holds that of its row.

    Args:
        plan: The kernel, of rows that share vectors.
        buffers: For each tensor that it reads, and for its result, the memory as a one-dimensional memref.
    """

    def _make_parts(self) -> list[Part]:
        return cut(self._plan.pack * self._width, self._plan.lanes)

    def _row(self, row: Row) -> None:
        numbers = (read for read in self._plan.reads if read in self._plan.row_numbers)
        row.read.update({read: self._numbers(row, read) for read in numbers})
        super()._row(row)

    @property
    def _width(self) -> int:
        """Lanes of a row."""
        return self._plan.tiling.panel_width

    def _totals(self, vectors: Sequence[ir.Value], combine: Combine) -> list[ir.Value]:
        if self._width == 1:
            return list(vectors)
        lanes = [vector.extract(each, [], [k]) for each in vectors for k in range(each.type.shape[0])]
        of_rows = [lanes[first : first + self._width] for first in range(0, len(lanes), self._width)]
        return self._spread([reduce(combine, of_row) for of_row in of_rows])

    def _spread(self, numbers: Sequence[ir.Value]) -> list[ir.Value]:
        """Vectors of which each lane holds the number of its row."""
        return [
            vector.from_elements(
                vector_type(part.lanes),
                [numbers[lane // self._width] for lane in range(part.offset, part.offset + part.lanes)],
            )
            for part in self._parts
        ]

    def _number(self, row: Row, step: int, part: Part) -> ir.Value:
        return row.numbers[step][self._parts.index(part)]

    def _row_step(self, row: Row, step: RowStep) -> list[ir.Value]:
        arguments = [self._numbers(row, argument) for argument in step.arguments]
        return [
            evaluate(step.body, [argument[k] for argument in arguments], part.lanes, FUNCTIONS)
            for k, part in enumerate(self._parts)
        ]

    def _numbers(self, row: Row, argument: Read | int) -> list[ir.Value]:
        if isinstance(argument, int):
            return row.numbers[argument]
        constant = splat_constant(argument.value)
        if constant is not None:
            return [splat(constant, part.lanes) for part in self._parts]
        outer, buffer = self._plan.reads[argument].outer, self._buffers[argument.value]
        rows = [add(row.index, i) for i in range(self._plan.pack)]
        return self._spread([memref.load(buffer, [index_value(outer, [each])]) for each in rows])

    def _store_numbers(self, row: Row, numbers: list[ir.Value]) -> None:
        lanes = [vector.extract(each, [], [k]) for each in numbers for k in range(each.type.shape[0])]
        buffer = self._buffers[self._plan.group.output.value]
        for i in range(self._plan.pack):
            at = index_value(self._plan.output.outer, [add(row.index, i)])
            memref.store(lanes[i * self._width], buffer, [at])
