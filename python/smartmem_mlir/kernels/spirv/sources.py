"""Loads of a tiled contraction: an operand's vectors, whatever memory they lie in and whichever way they run."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import vector

from smartmem_mlir.index_maps.expr import Expr, dim
from smartmem_mlir.kernels.addresses import FIRST_REDUCTION, PANEL, ROW, SplitAddress
from smartmem_mlir.kernels.spirv import integers
from smartmem_mlir.kernels.spirv.plan import Direction, Operand, ShaderPlan
from smartmem_mlir.kernels.spirv.storage import WIDTH, Binding, Elements, Vectors


def quarter(expr: Expr) -> Expr:
    """A quarter of an expression that is visibly a multiple of four."""
    return Expr(expr.const // WIDTH, tuple((atom, coefficient // WIDTH) for atom, coefficient in expr.terms))


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
        self._by_vectors = isinstance(binding, Vectors)

    def bases(self, first_row: ir.Value, panel: ir.Value, rows: int) -> list[ir.Value]:
        """The part of the address that is fixed for each of successive rows."""
        address = self._operand.address
        outer = quarter(address.outer) if self._by_vectors else address.outer
        first = integers.evaluate(outer, {ROW: first_row, PANEL: panel})
        stride = SplitAddress(outer, Expr(0), 0).row_stride
        if stride is not None:
            return [integers.add(first, stride * i) for i in range(rows)]
        others = [integers.add(first_row, i) for i in range(1, rows)]
        return [first, *(integers.evaluate(outer, {ROW: row, PANEL: panel}) for row in others)]

    def factors(self, base: ir.Value, trips: Sequence[ir.Value], lanes: Sequence[ir.Value]) -> list[ir.Value]:
        """A vector over the lanes for each term of a trip.

        Args:
            base: The part of the address that is fixed.
            trips: Of each loop over the sum.
            lanes: Numbers of the lanes that exist.
        """
        if not self._operand.address.lanes:
            return [vector.broadcast(_vector_type(), element) for element in self._elements(base, trips)]
        if self._by_vectors and self._operand.direction is Direction.LANES:
            return [self._vector(base, self._inner(term), trips) for term in range(self._plan.step)]
        stride = self._operand.address.lanes
        if self._by_vectors:
            starts = [integers.add(base, integers.scale(lane, stride // WIDTH)) for lane in lanes]
            return _transpose([self._vector(start, self._inner(0), trips) for start in starts])
        assert isinstance(self._binding, Elements)
        found = []
        for term in range(self._plan.step):
            at = self._add(base, self._inner(term), trips)
            found.append(self._binding.gather([integers.add(at, integers.scale(lane, stride)) for lane in lanes]))
        return found

    def _elements(self, base: ir.Value, trips: Sequence[ir.Value]) -> list[ir.Value]:
        """One element for each term of a trip, the same for all lanes."""
        if self._by_vectors:
            loaded = self._vector(base, self._inner(0), trips)
            return [vector.extract(loaded, [], [term]) for term in range(self._plan.step)]
        return [self._element(base, self._inner(term), trips) for term in range(self._plan.step)]

    def _inner(self, term: int) -> Expr:
        """The part of the address that moves with the sum, over trips, for a term of a trip."""
        count = len(self._plan.tiling.reductions)
        if not count:
            return Expr(0)
        terms = [dim(FIRST_REDUCTION + i) for i in range(count - 1)]
        innermost = dim(FIRST_REDUCTION + count - 1) * self._plan.step + term
        before = [Expr(0)] * FIRST_REDUCTION
        return self._operand.address.inner.substitute([*before, *terms, innermost])

    def _vector(self, base: ir.Value, inner: Expr, trips: Sequence[ir.Value]) -> ir.Value:
        assert isinstance(self._binding, Vectors)
        return self._binding.load((self._add(base, quarter(inner), trips),))

    def _element(self, base: ir.Value, inner: Expr, trips: Sequence[ir.Value]) -> ir.Value:
        assert isinstance(self._binding, Elements)
        return self._binding.load(self._add(base, inner, trips))

    @staticmethod
    def _add(base: ir.Value, inner: Expr, trips: Sequence[ir.Value]) -> ir.Value:
        if inner == Expr(0):
            return base
        values = {FIRST_REDUCTION + i: trip for i, trip in enumerate(trips)}
        return integers.add(base, integers.evaluate(inner, values))


def _vector_type() -> ir.VectorType:
    return ir.VectorType.get([WIDTH], ir.F32Type.get())


def _transpose(rows: Sequence[ir.Value]) -> list[ir.Value]:
    """Columns of a square of vectors."""
    return [vector.from_elements(_vector_type(), [vector.extract(row, [], [i]) for row in rows]) for i in range(WIDTH)]
