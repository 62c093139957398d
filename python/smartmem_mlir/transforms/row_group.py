"""A normalisation or a softmax, read as one kernel that goes over each row a few times.

The first operation is a reduction. It divides the dimensions into rows, which stay apart, and columns, which it
reduces; every other operation works on whole rows (element by element), reduces the same columns, or computes on one
number a row. As with contractions, everything is addressed over the first operation's iteration space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import Dim, Expr
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.transforms.access_folding import reads_index, through_views
from smartmem_mlir.transforms.contraction_group import Growth, Read, bordered, is_bordered, own_dims
from smartmem_mlir.transforms.scalar_bodies import maximum_result
from smartmem_mlir.transforms.structured import StructuredOp, argument_number, element_type, read_structured
from smartmem_mlir.transforms.view_ops import is_view, splat_constant

NEUTRAL = {
    "arith.addf": 0.0,
    "arith.maximumf": float("-inf"),
    "arith.maxnumf": float("-inf"),
    "arith.minimumf": float("inf"),
    "arith.minnumf": float("inf"),
    "arith.mulf": 1.0,
}
"""How a reduction may combine an element with what it has, and the element that changes nothing."""


class Kind(Enum):
    """What a step computes."""

    FULL = "one element for each row and column"
    ROW = "one element for each row"
    REDUCE = "one element for each row, from all columns"


@dataclass(frozen=True)
class RowStep:
    """One operation of the group.

    Args:
        kind: What it computes.
        body: Its scalar computation.
        arguments: For each input: what is read, or the number of an earlier step.
        accumulator: For a reduction, the argument of the body that holds what is reduced so far.
        initial: What a reduction starts from.
    """

    kind: Kind
    body: ir.Block
    arguments: tuple[Read | int, ...]
    accumulator: int = -1
    initial: float = 0.0


@dataclass(frozen=True)
class RowGroup:
    """A kernel over rows.

    Args:
        extents: Iteration space of the first reduction.
        columns: Its dimensions that are reduced.
        steps: What is computed, in order.
        output: The value that the kernel computes and where each element of it is written.
        border: Parts of that value around what is computed, each with the number that fills it.
        members: The operations that the kernel replaces, in program order.
    """

    extents: tuple[int, ...]
    columns: tuple[int, ...]
    steps: tuple[RowStep, ...]
    output: Read
    border: tuple[tuple[Box, float], ...]
    members: tuple[ir.Operation, ...]


class RowGrowth:
    """A row group while it grows; :meth:`start` makes one.

    Args:
        root: The reduction that it starts with.
        columns: The dimensions that it reduces.
    """

    def __init__(self, root: StructuredOp, columns: frozenset[int]) -> None:
        self._root = root
        self._growth = Growth(Box.of(root.extents))
        self._columns = columns
        self._steps: list[RowStep] = []
        self._members: list[ir.Operation] = []
        self._last: ir.Value | None = None
        self._border: tuple[tuple[Box, float], ...] = ()

    @staticmethod
    def start(op: ir.Operation, reduces: bool = True) -> RowGrowth | None:
        """A group of one reduction, or of one elementwise operation; None for other operations.

        Args:
            op: The operation.
            reduces: Whether it is to be a reduction. Of an elementwise operation the last axis of the result is taken
                for the columns.
        """
        root = read_structured(op)
        if root is None or root.is_contraction or root.is_elementwise == reduces or (not reduces and not op.results):
            return None
        columns = frozenset(d for d, reduced in enumerate(root.reductions) if reduced)
        if not reduces:
            columns = root.output_accesses[0][-1].dims if root.output_accesses[0] else columns
            if len(columns) != 1:
                return None
        growth = RowGrowth(root, columns)
        for value, access in zip(root.inputs, root.input_accesses, strict=True):
            if len({atom.index for e in access if isinstance(atom := e.single_atom, Dim)}) == len(root.extents):
                growth._growth.placed[value] = simplify_exprs(access, growth._growth.space)
        return growth if growth.add(op) else None

    def add(self, op: ir.Operation) -> bool:
        """Adds a view or an operation on values of the group; False, with nothing added, when it does not fit."""
        if is_view(op):
            self._members.append(op)
            return True
        step = read_structured(op)
        if step is None or (reads_index(step) and maximum_result(step) is None) or not _is_float(step):
            return False
        own = own_dims(self._growth, step)
        if own is None:
            return False
        made = self._elementwise(step, own) if step.is_elementwise else self._reduction(step, own)
        if made is None:
            return False
        number, result = made
        access = simplify_exprs([expr.substitute(own) for expr in step.output_accesses[result]], self._growth.space)
        value = op.results[result]
        self._growth.placed[value] = access
        self._growth.number[value] = len(self._steps)
        self._steps.append(number)
        self._members.append(op)
        self._last = value
        return True

    def surround(self, op: ir.Operation) -> bool:
        """Ends the group with the view that puts a border around its last value; False when it is none."""
        found = bordered(self._growth, op) if self._last is not None and op.operands[0] == self._last else None
        if found is None:
            return False
        self._last = op.results[0]
        self._growth.placed[self._last], self._border = found
        self._members.append(op)
        return True

    @property
    def growth(self) -> Growth:
        """Where the values of the group stand."""
        return self._growth

    def build(self) -> RowGroup | None:
        """The group as it is; None while it is nothing but a reduction."""
        if self._last is None or (len(self._steps) < 2 and not self._root.is_elementwise):
            return None
        output = Read(self._last, self._growth.placed[self._last])
        columns = tuple(sorted(self._columns))
        return RowGroup(self._root.extents, columns, tuple(self._steps), output, self._border, tuple(self._members))

    def _elementwise(self, step: StructuredOp, own: Sequence[Expr]) -> tuple[RowStep, int] | None:
        if len(step.outputs) != 1 or next(iter(step.body.arguments[len(step.inputs)].uses), None) is not None:
            return None
        arguments = self._arguments(step, own)
        used = frozenset().union(*(expr.dims for expr in own), ())
        if arguments is None:
            return None
        if used >= self._columns:
            return RowStep(Kind.FULL, step.body, arguments), 0
        return (RowStep(Kind.ROW, step.body, arguments), 0) if not used & self._columns else None

    def _reduction(self, step: StructuredOp, own: Sequence[Expr]) -> tuple[RowStep, int] | None:
        result = 0 if len(step.outputs) == 1 else maximum_result(step)
        if result is None:
            return None
        reduced = [own[d] for d, is_reduced in enumerate(step.reductions) if is_reduced]
        kept = [own[d] for d, is_reduced in enumerate(step.reductions) if not is_reduced]
        if frozenset().union(*(expr.dims for expr in reduced), ()) != self._columns:
            return None
        if frozenset().union(*(expr.dims for expr in kept), ()) & self._columns:
            return None
        initial = splat_constant(step.outputs[result])
        arguments = self._arguments(step, own)
        accumulator = len(step.inputs) + result
        if initial is None or arguments is None or combination(step.body, accumulator, result) is None:
            return None
        return RowStep(Kind.REDUCE, step.body, arguments, accumulator, initial), result

    def _arguments(self, step: StructuredOp, own: Sequence[Expr]) -> tuple[Read | int, ...] | None:
        arguments: list[Read | int] = []
        for value, access in zip(step.inputs, step.input_accesses, strict=True):
            wanted = simplify_exprs([expr.substitute(own) for expr in access], self._growth.space)
            inner, read = through_views(value, wanted, self._growth.space.extents)
            if inner in self._growth.number:
                if read != self._growth.placed[inner]:
                    return None
                arguments.append(self._growth.number[inner])
            else:
                arguments.append(Read(inner, read))
        return tuple(arguments)


def combination(body: ir.Block, accumulator: int, result: int) -> tuple[str, ir.Value] | None:
    """How a reduction combines: the operation's name, and what it combines the accumulator with."""
    yielded = list(body.operations)[-1].operands[result]
    if isinstance(yielded.owner, ir.Block):
        return None
    op = yielded.owner.operation
    if op.name not in NEUTRAL:
        return None
    for total, element in (tuple(op.operands), tuple(op.operands)[::-1]):
        if argument_number(total, body) == accumulator and not _uses(element, body, accumulator):
            return op.name, element
    return None


def _uses(value: ir.Value, body: ir.Block, number: int) -> bool:
    if isinstance(value.owner, ir.Block):
        return argument_number(value, body) == number
    return any(_uses(operand, body, number) for operand in value.owner.operation.operands)


def _is_float(step: StructuredOp) -> bool:
    kept = step.outputs[:1] if len(step.outputs) == 1 else [o for o in step.outputs if _float(o)][:1]
    return all(_float(value) for value in (*step.inputs, *kept))


def _float(value: ir.Value) -> bool:
    return isinstance(element_type(value.type), ir.F32Type | ir.F16Type)


def read_row_group(members: Sequence[ir.Operation], reduces: bool = True) -> RowGroup | None:
    """Reads operations as one kernel over rows: a reduction, then operations on it, in program order.

    Args:
        members: The operations. The last may be the view that puts a border around the result.
        reduces: Whether the first is a reduction; else it is elementwise.
    """
    growth = RowGrowth.start(members[0], reduces)
    if growth is None:
        return None
    if len(members) == 1:
        return growth.build()
    *inner, last = members[1:]
    if not all(growth.add(op) for op in inner):
        return None
    return growth.build() if (growth.surround(last) if is_bordered(last) else growth.add(last)) else None
