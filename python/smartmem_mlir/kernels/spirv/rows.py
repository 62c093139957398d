"""The code of a kernel over rows: what one thread does for the row that it shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import arith, scf, vector

from smartmem_mlir.index_maps.expr import Expr
from smartmem_mlir.kernels.addresses import FIRST_REDUCTION, ROW, SplitAddress
from smartmem_mlir.kernels.spirv import integers
from smartmem_mlir.kernels.spirv.bodies import evaluate
from smartmem_mlir.kernels.spirv.border import write_border
from smartmem_mlir.kernels.spirv.control import when
from smartmem_mlir.kernels.spirv.routes import quarter, route
from smartmem_mlir.kernels.spirv.row_plan import RowShaderPlan, combination_of
from smartmem_mlir.kernels.spirv.shader import Thread
from smartmem_mlir.kernels.spirv.storage import Binding, Elements, Place, VectorMemory
from smartmem_mlir.kernels.spirv.vectors import WIDTH, splat, vector_type
from smartmem_mlir.transforms.contraction_group import Read
from smartmem_mlir.transforms.row_group import NEUTRAL, Kind
from smartmem_mlir.transforms.view_ops import shape_of, splat_constant

_RADIX = 8
"""Threads whose totals one thread adds at a time."""


@dataclass
class _Place:
    """One vector of the row.

    Args:
        columns: Where it is along the column dimensions that do not fill vectors.
        vector: Which one of the dimension that does.
        exists: Whether the row has it; None if it has.
        values: Steps that are computed for it.
    """

    columns: list[ir.Value]
    vector: ir.Value
    exists: ir.Value | None
    values: dict[int, ir.Value] = field(default_factory=dict)


class RowShader:
    """Writes the body of a kernel.

    Args:
        plan: The kernel.
        bindings: The memory of each tensor that it reads or writes.
    """

    def __init__(self, plan: RowShaderPlan, bindings: Mapping[ir.Value, Binding]) -> None:
        self._plan = plan
        self._bindings = bindings
        self._numbers: dict[int, ir.Value] = {}
        self._turn = 0

    def emit(self, thread: Thread) -> None:
        """Writes it at the insertion point."""
        plan, steps = self._plan, self._plan.group.steps
        self._thread = thread
        self._number = integers.remainder(thread.local, plan.threads)
        row = integers.add(integers.scale(thread.workgroup[0], plan.rows), integers.divide(thread.local, plan.threads))
        partial = plan.tiling.num_rows % plan.rows != 0
        # What lies past the end computes the last row once more, and writes nothing.
        self._row = integers.at_most(row, plan.tiling.num_rows - 1) if partial else row
        self._in_range = [integers.less(row, plan.tiling.num_rows)] if partial else []
        held = [self._place(trip) for trip in range(plan.trips)] if plan.is_held else None
        self._row_steps()
        for numbers in plan.phases:
            totals = self._pass(numbers, held)
            for number, total in zip(numbers, totals, strict=True):
                self._numbers[number] = self._total(number, total)
            self._row_steps()
        if steps[-1].kind is Kind.FULL:
            self._write_row(held)
        else:
            self._write_number()
        output = plan.group.output.value
        binding = self._bindings[output]
        write_border(thread, plan.group.border, shape_of(output), binding, plan.workgroups, plan.invocations)

    def _place(self, trip: int | ir.Value) -> _Place:
        """The vector of a trip: the threads of a row take them in turn."""
        plan = self._plan
        first = trip * plan.threads if isinstance(trip, int) else integers.scale(trip, plan.threads)
        at = integers.add(self._number, first)
        exists = None
        if plan.vectors % plan.threads and not (isinstance(trip, int) and trip < plan.trips - 1):
            exists = integers.less(at, plan.vectors)
            at = integers.at_most(at, plan.vectors - 1)
        rest = integers.divide(at, plan.vectors_per_range)
        columns: list[ir.Value] = []
        for extent in reversed(plan.tiling.reduction_extents):
            columns.insert(0, integers.remainder(rest, extent))
            rest = integers.divide(rest, extent)
        inner = integers.remainder(at, plan.vectors_per_range) if plan.tiling.reductions else at
        return _Place(columns, inner, exists)

    def _row_steps(self) -> None:
        """Every computation on one number a row whose operands are known."""
        for number, step in enumerate(self._plan.group.steps):
            known = all(a in self._numbers for a in step.arguments if isinstance(a, int))
            if step.kind is Kind.ROW and number not in self._numbers and known:
                arguments = [splat(self._scalar(argument)) for argument in step.arguments]
                self._numbers[number] = vector.extract(evaluate(step.body, arguments), [], [0])

    def _scalar(self, argument: Read | int) -> ir.Value:
        if isinstance(argument, int):
            return self._numbers[argument]
        constant = splat_constant(argument.value)
        if constant is not None:
            return arith.constant(ir.F32Type.get(), constant)
        binding = self._bindings[argument.value]
        assert isinstance(binding, Elements)
        return binding.load(integers.evaluate(self._plan.reads[argument].outer, {ROW: self._row}))

    def _pass(self, numbers: Sequence[int], held: Sequence[_Place] | None) -> list[ir.Value]:
        """One pass over the row: what this thread's vectors come to."""
        starts = [splat(NEUTRAL[self._name(number)]) for number in numbers]
        if held is not None:
            totals = starts
            for place in held:
                totals = self._reduce(numbers, place, totals)
            return totals
        loop = self._loop(starts)
        with ir.InsertionPoint(loop.body):
            totals = list(loop.inner_iter_args)
            for place in self._places_of(loop):
                totals = self._reduce(numbers, place, totals)
            scf.YieldOp(totals)
        return list(loop.results)

    def _loop(self, starts: Sequence[ir.Value]) -> scf.ForOp:
        """Over the vectors of a thread."""
        first, end, step = map(integers.constant, (0, self._plan.trips, self._plan.unroll))
        return scf.ForOp(first, end, step, list(starts))

    def _places_of(self, loop: scf.ForOp) -> list[_Place]:
        """The vectors of one trip."""
        return [self._place(integers.add(loop.induction_variable, i)) for i in range(self._plan.unroll)]

    def _reduce(self, numbers: Sequence[int], place: _Place, totals: Sequence[ir.Value]) -> list[ir.Value]:
        results = []
        for number, total in zip(numbers, totals, strict=True):
            step = self._plan.group.steps[number]
            arguments = [self._argument(argument, place) for argument in step.arguments]
            name, element = combination_of(self._plan.group, number)
            value = evaluate(step.body, arguments, element)
            results.append(_combine(name, total, self._masked(value, place, NEUTRAL[name])))
        return results

    def _masked(self, value: ir.Value, place: _Place, neutral: float) -> ir.Value:
        """The value where the row has an element, the neutral one elsewhere."""
        width = self._plan.tiling.panel_width
        other = splat(neutral)
        if width % WIDTH:
            elements = []
            for lane in range(WIDTH):
                element = vector.extract(value, [], [lane])
                column = integers.add(integers.scale(place.vector, WIDTH), lane)
                exists = integers.less(column, width)
                elements.append(arith.select(exists, element, vector.extract(other, [], [lane])) if lane else element)
            value = vector.from_elements(value.type, elements)
        if place.exists is None:
            return value
        # SPIR-V 1.3 selects vectors by vectors.
        exists = vector.broadcast(ir.VectorType.get([WIDTH], place.exists.type), place.exists)
        return arith.select(exists, value, other)

    def _total(self, number: int, total: ir.Value) -> ir.Value:
        """The number that all threads of the row reduce to; each of them gets it."""
        plan, name = self._plan, self._name(number)
        stride = 1
        while stride < plan.threads:
            radix = min(_RADIX, plan.threads // stride)
            offset = self._turn * plan.invocations
            self._turn = 1 - self._turn
            self._thread.share(integers.add(self._thread.local, offset), total)
            self._thread.barrier()
            digit = integers.remainder(integers.divide(self._thread.local, stride), radix)
            first = arith.subi(self._thread.local, integers.scale(digit, stride))
            total = self._thread.shared(integers.add(first, offset))
            for i in range(1, radix):
                total = _combine(name, total, self._thread.shared(integers.add(first, offset + i * stride)))
            stride *= radix
        lanes = [vector.extract(total, [], [lane]) for lane in range(WIDTH)]
        result = _combine(name, _combine(name, lanes[0], lanes[1]), _combine(name, lanes[2], lanes[3]))
        initial = plan.group.steps[number].initial
        if initial == NEUTRAL[name]:
            return result
        return _combine(name, result, arith.constant(ir.F32Type.get(), initial))

    def _value(self, number: int, place: _Place) -> ir.Value:
        """A step with an element for each row and column, for one vector."""
        if number not in place.values:
            step = self._plan.group.steps[number]
            arguments = [self._argument(argument, place) for argument in step.arguments]
            place.values[number] = evaluate(step.body, arguments)
        return place.values[number]

    def _argument(self, argument: Read | int, place: _Place) -> ir.Value:
        if isinstance(argument, int):
            if self._plan.group.steps[argument].kind is Kind.FULL:
                return self._value(argument, place)
            return vector.broadcast(vector_type(), self._numbers[argument])
        constant = splat_constant(argument.value)
        if constant is not None:
            return splat(constant)
        key = -1 - list(self._plan.reads).index(argument)
        if key not in place.values:
            place.values[key] = self._load(argument, place)
        return place.values[key]

    def _load(self, read: Read, place: _Place) -> ir.Value:
        binding, address = self._bindings[read.value], self._plan.reads[read]
        if isinstance(binding, VectorMemory):
            return binding.load(self._vector_place(read, binding, place))
        assert isinstance(binding, Elements)
        at = self._at(address.outer, address.inner, place)
        if not address.lanes:
            return vector.broadcast(vector_type(), binding.load(at))
        return binding.gather([integers.add(at, column) for column in self._columns(place)])

    def _columns(self, place: _Place) -> list[ir.Value]:
        """The elements of a vector, the last one again for those that the row does not have."""
        width = self._plan.tiling.panel_width
        first = integers.scale(place.vector, WIDTH)
        columns = [integers.add(first, lane) for lane in range(WIDTH)]
        return [integers.at_most(column, width - 1) for column in columns] if width % WIDTH else columns

    def _at(self, outer: Expr, inner: Expr, place: _Place) -> ir.Value:
        values = {FIRST_REDUCTION + i: column for i, column in enumerate(place.columns)}
        return integers.evaluate(outer + inner, {ROW: self._row, **values})

    def _vector_place(self, read: Read, binding: VectorMemory, place: _Place) -> Place:
        """Of a vector that is read or written."""
        x, *rest = route(self._plan.access(read), shape_of(read.value), self._plan.tiling, binding)
        along = integers.add(self._at(quarter(x.outer), quarter(x.inner), place), place.vector)
        return along, *(self._at(part.outer, part.inner, place) for part in rest)

    def _write_row(self, held: Sequence[_Place] | None) -> None:
        if held is not None:
            for place in held:
                self._store(place)
            return
        loop = self._loop([])
        with ir.InsertionPoint(loop.body):
            places = self._places_of(loop)
            for place in places:
                self._value(len(self._plan.group.steps) - 1, place)
            for place in places:
                self._store(place)
            scf.YieldOp([])

    def _store(self, place: _Place) -> None:
        plan = self._plan
        output: SplitAddress = plan.output
        binding = self._bindings[plan.group.output.value]
        value = self._value(len(plan.group.steps) - 1, place)
        conditions = [*self._in_range, *([] if place.exists is None else [place.exists])]
        when(conditions, lambda: self._store_vector(binding, output, value, place))

    def _store_vector(self, binding: Binding, output: SplitAddress, value: ir.Value, place: _Place) -> None:
        if isinstance(binding, VectorMemory):
            binding.store(self._vector_place(self._plan.group.output, binding, place), value)
            return
        assert isinstance(binding, Elements)
        width = self._plan.tiling.panel_width
        at = self._at(output.outer, output.inner, place)
        for lane in range(WIDTH):
            column = integers.add(integers.scale(place.vector, WIDTH), lane)
            exists = [integers.less(column, width)] if width % WIDTH else []
            when(exists, _storing(binding, integers.add(at, column), vector.extract(value, [], [lane])))

    def _write_number(self) -> None:
        plan = self._plan
        binding = self._bindings[plan.group.output.value]
        assert isinstance(binding, Elements)
        at = integers.evaluate(plan.output.outer, {ROW: self._row})
        first = arith.cmpi(arith.CmpIPredicate.eq, self._number, integers.constant(0))
        when([*self._in_range, first], _storing(binding, at, self._numbers[len(plan.group.steps) - 1]))

    def _name(self, number: int) -> str:
        return combination_of(self._plan.group, number)[0]


def _storing(binding: Elements, at: ir.Value, value: ir.Value) -> Callable[[], None]:
    return lambda: binding.store(at, value)


def _combine(name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    return ir.Operation.create(name, [a.type], [a, b]).results[0]
