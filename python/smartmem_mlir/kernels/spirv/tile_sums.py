"""The sums of a subgroup's tile of cooperative matrices.

While a trip's matrices are multiplied the next trip's are on their way: the loads of memory take longer than the
products, and few subgroups run on a core at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from smartmem_mlir.kernels.addresses import FIRST_REDUCTION, PANEL
from smartmem_mlir.kernels.spirv import integers
from smartmem_mlir.kernels.spirv.block_copy import BlockCopy
from smartmem_mlir.kernels.spirv.control import loop
from smartmem_mlir.kernels.spirv.cooperative_matrices import MatrixUnit
from smartmem_mlir.kernels.spirv.cooperative_plan import BLOCK, MatrixPlan
from smartmem_mlir.kernels.spirv.vectors import WIDTH

Values = list[ir.Value]


class TileSums:
    """Writes the loop over the sum.

    Args:
        plan: The kernel.
        unit: What multiplies.
        copy: Brings the left factor.
        split: The subgroup's part of the sum.
        tile: Its tile in the workgroup, counted along rows.
        panel: Its first panel.
    """

    def __init__(
        self, plan: MatrixPlan, unit: MatrixUnit, copy: BlockCopy, split: ir.Value, tile: ir.Value, panel: ir.Value
    ) -> None:
        self._plan = plan
        self._unit = unit
        self._copy = copy
        self._split = split
        self._left_base = copy.first_block(tile, split)
        panels = plan.matrices.lanes // WIDTH
        firsts = [
            integers.evaluate(plan.right.outer, {PANEL: integers.add(panel, i * panels)}) for i in range(plan.tile[1])
        ]
        self._right_bases = [integers.divide(first, BLOCK) for first in firsts]

    def emit(self) -> list[Values]:
        """Writes it at the insertion point; the sums of the tile's matrices, along lanes first."""
        zeros = [self._unit.zero() for _ in range(self._plan.tile[0] * self._plan.tile[1])]
        size, count = len(zeros[0]), len(zeros) * len(zeros[0])

        def multiplied(carried: Sequence[ir.Value], following: ir.Value | None) -> Values:
            """One trip's products, and meanwhile the loads of the following one."""
            blocks, rights = list(carried[count : -self._rights]), list(carried[-self._rights :])
            self._copy.store(blocks)
            loaded = [] if following is None else self._load(following)
            return [*self._multiply(list(carried[:count]), size, rights), *loaded]

        last = self._plan.rounds - 1
        carried = [*(part for total in zeros for part in total), *self._load(integers.constant(0))]
        if last:
            carried = loop(last, lambda trip, carried: multiplied(carried, integers.add(trip, 1)), carried)
        sums = multiplied(carried, None)
        return [sums[i : i + size] for i in range(0, count, size)]

    @property
    def _rights(self) -> int:
        """Right factors of a trip."""
        return self._plan.unroll * self._plan.tile[1]

    def _load(self, trip: ir.Value) -> Values:
        """A trip's blocks, then its right factors."""
        plan = self._plan
        blocks = self._copy.load(self._trips(trip, self._copy.part))
        *outer, inner = self._trips(trip, self._split)
        rights = []
        for i in range(plan.unroll):
            places = (*outer, integers.add(integers.scale(inner, plan.unroll), i))
            moved = integers.evaluate(
                plan.right.inner, {FIRST_REDUCTION + level: place for level, place in enumerate(places)}
            )
            rights += [self._unit.load("B", integers.add(base, moved)) for base in self._right_bases]
        return [*blocks, *rights]

    def _trips(self, trip: ir.Value, part: ir.Value) -> Values:
        """The trip of each loop over the sum, of a trip of one part of it."""
        plan = self._plan
        number = integers.add(integers.scale(part, plan.rounds), trip) if plan.splits > 1 else trip
        trips: Values = []
        for count in reversed(plan.trips[1:]):
            trips.insert(0, integers.remainder(number, count))
            number = integers.divide(number, count)
        return [number, *trips]

    def _multiply(self, sums: Values, size: int, rights: Sequence[ir.Value]) -> Values:
        """Adds a trip's products to the sums, of so many values each."""
        across = self._plan.tile[1]
        for i in range(self._plan.unroll):
            for row, at in enumerate(self._copy.matrices(i)):
                left = self._unit.load("A", integers.add(self._left_base, at))
                for lane in range(across):
                    first = (row * across + lane) * size
                    total = self._unit.multiply_add(left, rights[i * across + lane], sums[first : first + size])
                    sums[first : first + size] = total
        return sums
