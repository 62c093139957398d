"""The body of a kernel over rows for a CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from mlir import ir
from mlir.dialects import arith, memref, scf, vector

from smartmem_mlir.index_maps.expr import Expr
from smartmem_mlir.kernels.addresses import FIRST_REDUCTION, SplitAddress
from smartmem_mlir.kernels.bodies import evaluate
from smartmem_mlir.kernels.cpu.borders import write_borders
from smartmem_mlir.kernels.cpu.lanes import (
    Combine,
    Part,
    add,
    cut,
    index,
    load,
    mask,
    number,
    reduce,
    scratch,
    splat,
    store,
)
from smartmem_mlir.kernels.cpu.row_plan import RowPlan
from smartmem_mlir.kernels.functions import FUNCTIONS
from smartmem_mlir.transforms.contraction_group import Read
from smartmem_mlir.transforms.row_group import NEUTRAL, Kind, RowStep, combination
from smartmem_mlir.transforms.view_code import index_value
from smartmem_mlir.transforms.view_ops import shape_of, splat_constant

UNROLLED_VECTORS = 8
"""Rows of at most this many vectors are straight code."""


@dataclass
class Row:
    """One row while it is computed.

    Args:
        index: Its number; of rows that share vectors, the first one's.
        numbers: By step: one scalar, or the vectors of rows that share vectors.
        read: The same for what is read once for all columns.
    """

    index: ir.Value
    numbers: dict[int, list[ir.Value]] = field(default_factory=dict)
    read: dict[Read, list[ir.Value]] = field(default_factory=dict)


class RowEmitter:
    """Writes one kernel at the insertion point, the start of a function.

    Args:
        plan: The kernel.
        buffers: For each tensor that it reads, and for its result, the memory as a one-dimensional memref.
    """

    def __init__(self, plan: RowPlan, buffers: dict[ir.Value, ir.Value]) -> None:
        self._plan = plan
        self._buffers = buffers
        self._parts = self._make_parts()
        self._scratch = {step: scratch(plan.columns) for step in sorted(plan.stored)}

    def _make_parts(self) -> list[Part]:
        return cut(self._plan.tiling.panel_width, self._plan.lanes)

    def emit(self, block: ir.Value) -> None:
        """Computes the workgroup of this index."""
        plan = self._plan
        first = arith.muli(block, index(plan.block_rows))
        end = arith.minsi(add(first, plan.block_rows), index(plan.tiling.num_rows))
        loop = scf.ForOp(first, end, index(plan.pack))
        with ir.InsertionPoint(loop.body):
            self._row(Row(loop.induction_variable))
            scf.YieldOp([])
        output = plan.group.output.value
        write_borders(self._buffers[output], shape_of(output), plan.group.border, plan.lanes, [block])

    def _row(self, row: Row) -> None:
        steps = self._plan.group.steps
        self._row_steps(row)
        for numbers in self._plan.phases:
            reductions = [n for n in numbers if steps[n].kind is Kind.REDUCE]
            for n, total in zip(reductions, self._phase(row, numbers, reductions), strict=True):
                row.numbers[n] = total
            self._row_steps(row)
        if steps[-1].kind is not Kind.FULL:
            self._store_numbers(row, row.numbers[len(steps) - 1])

    def _store_numbers(self, row: Row, numbers: list[ir.Value]) -> None:
        at = index_value(self._plan.output.outer, [row.index])
        memref.store(numbers[0], self._buffers[self._plan.group.output.value], [at])

    def _row_steps(self, row: Row) -> None:
        """Every computation on one number a row whose operands are known."""
        for n, step in enumerate(self._plan.group.steps):
            known = all(argument in row.numbers for argument in step.arguments if isinstance(argument, int))
            if step.kind is not Kind.ROW or n in row.numbers or not known:
                continue
            row.numbers[n] = self._row_step(row, step)

    def _row_step(self, row: Row, step: RowStep) -> list[ir.Value]:
        values = [self._scalar(row, argument) for argument in step.arguments]
        # In vectors: code generators know more functions on them.
        vectors = [splat(value, self._plan.lanes) for value in values]
        result = evaluate(step.body, vectors, self._plan.lanes, FUNCTIONS)
        return [vector.extract(result, [], [0])]

    def _scalar(self, row: Row, argument: Read | int) -> ir.Value:
        if isinstance(argument, int):
            return row.numbers[argument][0]
        constant = splat_constant(argument.value)
        if constant is not None:
            return number(constant)
        at = index_value(self._plan.reads[argument].outer, [row.index])
        return memref.load(self._buffers[argument.value], [at])

    def _phase(self, row: Row, numbers: Sequence[int], reductions: Sequence[int]) -> list[list[ir.Value]]:
        """One pass over the row; the totals of what it reduces."""
        plan = self._plan
        whole = [part for part in self._parts if part.lanes == plan.lanes and part.is_whole and plan.pack == 1]
        rest = [part for part in self._parts if part not in whole]
        combine = [self._combination(n) for n in reductions]
        widths = ([plan.lanes] if whole else []) + [part.lanes for part in rest]
        starts = [splat(NEUTRAL[combine[i][0]], width) for width in widths for i in range(len(reductions))]
        bases = {read: index_value(address.outer, [row.index]) for read, address in self._used_reads(numbers).items()}
        output = index_value(plan.output.outer, [row.index])

        def vectors(columns: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
            at = _At(bases, output, columns)
            slots = [carried[k : k + len(reductions)] for k in range(0, len(carried), len(reductions) or 1)]
            result: list[ir.Value] = []
            if whole:
                result += self._whole(row, numbers, reductions, at, len(whole), slots[0] if reductions else [])
            for k, part in enumerate(rest):
                mine = slots[k + (1 if whole else 0)] if reductions else []
                result += self._part(row, numbers, reductions, at, index(part.offset), part, mine)
            return result

        names = [combine[i][0] for _ in widths for i in range(len(reductions))]
        totals = self._nest(0, [], starts, vectors, names)
        results = []
        for i, n in enumerate(reductions):
            mine = [totals[k * len(reductions) + i] for k in range(len(widths))]
            name = combine[i][0]
            numbers_ = self._totals(mine, partial(_combine, name))
            initial = plan.group.steps[n].initial
            if initial != NEUTRAL[name]:
                numbers_ = [_combine(name, total, _like(total, initial)) for total in numbers_]
            results.append(numbers_)
        return results

    def _totals(self, vectors: Sequence[ir.Value], combine: Combine) -> list[ir.Value]:
        """A row's number from the vectors of its pass."""
        return [reduce(vectors, combine)]

    def _nest(
        self,
        level: int,
        columns: list[ir.Value],
        carried: list[ir.Value],
        body: Callable[[list[ir.Value], list[ir.Value]], list[ir.Value]],
        names: Sequence[str],
    ) -> list[ir.Value]:
        """Loops over the column dimensions that do not fill vectors, each with totals of its own: less is rounded."""
        extents = self._plan.tiling.reduction_extents
        if level == len(extents):
            return body(columns, carried)
        neutral = [_neutral(name, total.type) for name, total in zip(names, carried, strict=True)] if level else carried
        loop = scf.ForOp(index(0), index(extents[level]), index(1), neutral)
        with ir.InsertionPoint(loop.body):
            at = [*columns, loop.induction_variable]
            scf.YieldOp(self._nest(level + 1, at, list(loop.inner_iter_args), body, names))
        if not level:
            return list(loop.results)
        return [_combine(name, a, b) for name, a, b in zip(names, carried, loop.results, strict=True)]

    def _whole(
        self,
        row: Row,
        numbers: Sequence[int],
        reductions: Sequence[int],
        at: _At,
        count: int,
        carried: Sequence[ir.Value],
    ) -> list[ir.Value]:
        """The whole vectors of the row."""
        lanes = self._plan.lanes
        part = Part(0, lanes, lanes)
        if count <= UNROLLED_VECTORS:
            totals = list(carried)
            for k in range(count):
                totals = self._part(row, numbers, reductions, at, index(k * lanes), part, totals)
            return totals
        loop = scf.ForOp(index(0), index(count * lanes), index(lanes), list(carried))
        with ir.InsertionPoint(loop.body):
            inner = list(loop.inner_iter_args)
            scf.YieldOp(self._part(row, numbers, reductions, at, loop.induction_variable, part, inner))
        return list(loop.results)

    def _part(
        self,
        row: Row,
        numbers: Sequence[int],
        reductions: Sequence[int],
        at: _At,
        lane: ir.Value,
        part: Part,
        carried: Sequence[ir.Value],
    ) -> list[ir.Value]:
        """One vector of the row: the full steps of the pass, and what it adds to the totals."""
        steps = self._plan.group.steps
        values: dict[int, ir.Value] = {}
        totals = list(carried)
        for n in numbers:
            step = steps[n]
            arguments = [self._argument(row, argument, values, at, lane, part) for argument in step.arguments]
            if step.kind is Kind.REDUCE:
                name, element = self._combination(n)
                value = evaluate(step.body, arguments, part.lanes, FUNCTIONS, element)
                if not part.is_whole:
                    value = arith.select(mask(part), value, splat(NEUTRAL[name], part.lanes))
                slot = reductions.index(n)
                totals[slot] = _combine(name, totals[slot], value)
                continue
            values[n] = evaluate(step.body, arguments, part.lanes, FUNCTIONS)
            if n in self._scratch:
                store(values[n], self._scratch[n], self._column(at, lane), part)
            if n == len(steps) - 1:
                output = self._plan.output
                where = add(self._moved(at.output, output.inner, at), lane)
                store(values[n], self._buffers[self._plan.group.output.value], where, part)
        return totals

    def _argument(
        self, row: Row, argument: Read | int, values: dict[int, ir.Value], at: _At, lane: ir.Value, part: Part
    ) -> ir.Value:
        if isinstance(argument, int):
            if argument in values:
                return values[argument]
            if argument in self._scratch:
                return load(self._scratch[argument], self._column(at, lane), part)
            return self._number(row, argument, part)
        constant = splat_constant(argument.value)
        if constant is not None:
            return splat(constant, part.lanes)
        if argument in row.read:
            return row.read[argument][self._parts.index(part)]
        address, buffer = self._plan.reads[argument], self._buffers[argument.value]
        where = self._moved(at.bases[argument], address.inner, at)
        if address.lanes or (self._plan.pack > 1 and argument not in self._plan.steady):
            return load(buffer, add(where, lane), part)
        return splat(memref.load(buffer, [where]), part.lanes)

    def _number(self, row: Row, step: int, part: Part) -> ir.Value:
        """A row's number in every lane of a vector of the row."""
        return splat(row.numbers[step][0], part.lanes)

    def _moved(self, base: ir.Value, inner: Expr, at: _At) -> ir.Value:
        if inner == Expr(0):
            return base
        return add(base, index_value(inner, [None] * FIRST_REDUCTION + at.columns))

    def _column(self, at: _At, lane: ir.Value) -> ir.Value:
        """Position in a scratch row."""
        tiling = self._plan.tiling
        total = index(0)
        for value, extent in zip(at.columns, tiling.reduction_extents, strict=True):
            total = add(arith.muli(total, index(extent)), value)
        return add(arith.muli(total, index(tiling.panel_width)), lane) if at.columns else lane

    def _used_reads(self, numbers: Sequence[int]) -> dict[Read, SplitAddress]:
        used = (argument for n in numbers for argument in self._plan.group.steps[n].arguments)
        return {read: self._plan.reads[read] for read in used if isinstance(read, Read) and read in self._plan.reads}

    def _combination(self, n: int) -> tuple[str, ir.Value]:
        step: RowStep = self._plan.group.steps[n]
        result = step.accumulator - len(step.arguments)
        found = combination(step.body, step.accumulator, result)
        assert found is not None, "the group has checked it"
        return found


@dataclass(frozen=True)
class _At:
    """Where a pass is: start of the row in everything that is read, in the result, and the outer columns."""

    bases: dict[Read, ir.Value]
    output: ir.Value
    columns: list[ir.Value]


def _neutral(name: str, type_: ir.Type) -> ir.Value:
    return splat(NEUTRAL[name], ir.VectorType(type_).shape[0])


def _like(value: ir.Value, constant: float) -> ir.Value:
    """A constant of the type of a number or vector."""
    made = number(constant)
    return splat(made, value.type.shape[0]) if isinstance(value.type, ir.VectorType) else made


def _combine(name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    return ir.Operation.create(name, [a.type], [a, b]).results[0]
