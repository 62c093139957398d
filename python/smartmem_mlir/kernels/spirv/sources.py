"""Loads of a tiled contraction: an operand's vectors, whatever memory they lie in and whichever way they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlir import ir
from mlir.dialects import vector

from smartmem_mlir.index_maps.expr import Expr, dim
from smartmem_mlir.kernels.addresses import FIRST_REDUCTION, PANEL, ROW, SplitAddress
from smartmem_mlir.kernels.spirv import integers
from smartmem_mlir.kernels.spirv.plan import Direction, Operand, ShaderPlan
from smartmem_mlir.kernels.spirv.routes import is_divided, packed_route, quarter, route
from smartmem_mlir.kernels.spirv.storage import Binding, Elements, Place, VectorMemory
from smartmem_mlir.kernels.spirv.vectors import WIDTH, splat, vector_type
from smartmem_mlir.transforms.view_ops import shape_of, splat_constant


class Source:
    """One operand of a kernel.

    Args:
        plan: The kernel.
        operand: What is read.
        binding: The memory that it lies in.
    """

    def __init__(self, plan: ShaderPlan, operand: Operand, binding: Binding) -> None:
        self._plan = plan
        self._operand = operand
        self._binding = binding
        if plan.packed and operand is plan.rhs:
            self._route = packed_route(plan.tiling, binding)
        else:
            self._route = route(operand.read.access, shape_of(operand.read.value), plan.tiling, binding)
        self._divided = [is_divided(binding, coordinate) for coordinate in range(len(self._route))]

    def bases(self, first_row: ir.Value, panel: ir.Value, rows: int) -> list[Place]:
        """The part of the place that is fixed for each of successive rows."""
        by_coordinate = [
            _rows(quarter(part.outer) if divided else part.outer, first_row, panel, rows)
            for part, divided in zip(self._route, self._divided, strict=True)
        ]
        return list(zip(*by_coordinate, strict=True))

    def factors(self, base: Place, trips: Sequence[ir.Value], lanes: Sequence[ir.Value]) -> list[ir.Value]:
        """A vector over the lanes for each term of a trip.

        Args:
            base: The part of the place that is fixed.
            trips: Of each loop over the sum.
            lanes: Numbers of the lanes that exist.
        """
        terms = range(self._plan.step)
        memory = self._binding
        if isinstance(memory, VectorMemory):
            if self._operand.direction is Direction.LANES:
                return [memory.load(self._moved(base, term, trips)) for term in terms]
            start = self._moved(base, 0, trips)
            if self._operand.address.lanes:
                return _transpose([memory.load(self._lane(start, lane)) for lane in lanes])
            loaded = memory.load(start)
            return [vector.broadcast(vector_type(), vector.extract(loaded, [], [term])) for term in terms]
        assert isinstance(memory, Elements)
        places = [self._moved(base, term, trips) for term in terms]
        if not self._operand.address.lanes:
            return [vector.broadcast(vector_type(), memory.load(at)) for (at,) in places]
        return [memory.gather([self._lane(place, lane)[0] for lane in lanes]) for place in places]

    def _lane(self, place: Place, lane: ir.Value) -> Place:
        """The place of another lane."""
        strides = [
            part.lanes // WIDTH if divided else part.lanes
            for part, divided in zip(self._route, self._divided, strict=True)
        ]
        return tuple(
            integers.add(at, integers.scale(lane, stride)) if stride else at
            for at, stride in zip(place, strides, strict=True)
        )

    def _moved(self, base: Place, term: int, trips: Sequence[ir.Value]) -> Place:
        """The place of a term of a trip."""
        values = {FIRST_REDUCTION + i: trip for i, trip in enumerate(trips)}
        moved = []
        for at, part, divided in zip(base, self._route, self._divided, strict=True):
            inner = self._over_trips(part.inner, term)
            inner = quarter(inner) if divided else inner
            moved.append(at if inner == Expr(0) else integers.add(at, integers.evaluate(inner, values)))
        return tuple(moved)

    def _over_trips(self, inner: Expr, term: int) -> Expr:
        """What moves with the sum, over trips instead of terms."""
        count = len(self._plan.tiling.reductions)
        if not count:
            return inner
        outer = [dim(FIRST_REDUCTION + i) for i in range(count - 1)]
        innermost = dim(FIRST_REDUCTION + count - 1) * self._plan.step + term
        return inner.substitute([*[Expr(0)] * FIRST_REDUCTION, *outer, innermost])


class Number:
    """In place of an operand: a tensor of one number, which needs no memory."""

    def __init__(self, plan: ShaderPlan, value: float) -> None:
        self._plan = plan
        self._value = value

    def bases(self, first_row: ir.Value, panel: ir.Value, rows: int) -> list[Place]:
        """Places, of no coordinates."""
        return [()] * rows

    def factors(self, base: Place, trips: Sequence[ir.Value], lanes: Sequence[ir.Value]) -> list[ir.Value]:
        """A vector of the number for each term of a trip."""
        return [splat(self._value)] * self._plan.step


def source_of(plan: ShaderPlan, operand: Operand, bindings: Mapping[ir.Value, Binding]) -> Source | Number:
    """How a kernel reads an operand."""
    number = splat_constant(operand.value)
    return Number(plan, number) if number is not None else Source(plan, operand, bindings[operand.value])


def _rows(outer: Expr, first_row: ir.Value, panel: ir.Value, rows: int) -> list[ir.Value]:
    """A coordinate for each of successive rows."""
    first = integers.evaluate(outer, {ROW: first_row, PANEL: panel})
    stride = SplitAddress(outer, Expr(0), 0).row_stride
    if stride is not None:
        return [integers.add(first, stride * i) for i in range(rows)]
    others = [integers.add(first_row, i) for i in range(1, rows)]
    return [first, *(integers.evaluate(outer, {ROW: row, PANEL: panel}) for row in others)]


def _transpose(rows: Sequence[ir.Value]) -> list[ir.Value]:
    """Columns of a square of vectors."""
    return [vector.from_elements(vector_type(), [vector.extract(row, [], [i]) for row in rows]) for i in range(WIDTH)]
