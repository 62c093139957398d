"""Gathers at positions from a constant table: a few runs of equal steps are the pieces of a view.

Importers spell a reflecting border so: one axis is read at 2, 1, 0, 1, ..., n - 1, n - 2, n - 3. The table may have
gone through operations that count negative positions from the end; what it holds is computed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import Dim, Expr, dim, dims
from smartmem_mlir.index_maps.view import Piece, View
from smartmem_mlir.transforms.index_expressions import IndexEvaluator
from smartmem_mlir.transforms.projections import inverse_of_projection
from smartmem_mlir.transforms.structured import Access, StructuredOp, read_structured, write_map
from smartmem_mlir.transforms.view_ops import defining_op, shape_of

Table = npt.NDArray[np.int64]

MAX_RUNS = 8
"""Pieces of a view; a table of more runs, or of runs of less than two positions, stays a gather."""

_COMPARE = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
"""By predicate of arith.cmpi, as far as they are signed."""
_ARITHMETIC = {"arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply}
_CASTS = ("arith.index_cast", "arith.extsi")


@dataclass(frozen=True)
class TabulatedRead:
    """An operation that reads one axis of a tensor at positions from a table.

    Args:
        op: The operation.
        source: The tensor.
        axis: The axis of the tensor.
        table: Positions on it.
        dimension: The dimension of the iteration space that counts through the table.
        access: Coordinates of the tensor over the iteration space, with `dimension` in place of the axis's.
        runs: Start and stop of the runs of equal steps in the table.
        result: The iteration space over the result's coordinates.
    """

    op: StructuredOp
    source: ir.Value
    axis: int
    table: Table
    dimension: int
    access: Access
    runs: tuple[tuple[int, int], ...]
    result: tuple[Expr, ...]

    def view(self) -> View:
        """What the operation computes."""
        shape = shape_of(self.op.op.results[0])
        counted = self.result[self.dimension]
        (along,) = counted.dims
        pieces = []
        for start, stop in self.runs:
            step = int(self.table[start + 1] - self.table[start]) if stop - start > 1 else 0
            position = (counted - start) * step + int(self.table[start])
            exprs = [expr.substitute(self.result) for expr in self.access]
            exprs[self.axis] = position
            pieces.append(Piece(Box.of(shape).with_axis(along, start, stop), 0, tuple(exprs)))
        view = View.of(shape, [shape_of(self.source)], pieces)
        view.check_bounds()
        return view

    def definition(self) -> dict[str, Any]:
        """As `movement.definition`: the tensor with its axis taken at the table's positions, and how that is read."""
        rank = len(self.op.extents)
        return {
            "table": tuple(map(int, self.table)),
            "axis": self.axis,
            "extents": self.op.extents,
            "reads": str(write_map(self.access, rank)),
            "writes": str(write_map(self.op.output_accesses[0], rank)),
        }


def tabulated_read(op: ir.Operation) -> TabulatedRead | None:
    """Reads a gather; None for other operations and for tables of many runs."""
    structured = read_structured(op)
    if structured is None or not structured.is_elementwise or len(structured.outputs) != 1:
        return None
    gather = defining_op(list(structured.body.operations)[-1].operands[0])
    if gather is None or gather.name != "tensor.extract" or len(structured.inputs) != 1:
        return None
    atom = structured.input_accesses[0][0].single_atom if len(structured.input_accesses[0]) == 1 else None
    table = _table(structured.inputs[0])
    result = inverse_of_projection(structured.output_accesses[0], structured.extents, shape_of(op.results[0]))
    if table is None or not isinstance(atom, Dim) or result is None or not result[atom.index].dims:
        return None
    rank = len(structured.extents)
    known = {structured.body.arguments[0]: dim(rank)}
    evaluate = IndexEvaluator([*structured.extents, int(table.max()) + 1], known)
    coordinates = [evaluate(index) for index in list(gather.operands)[1:]]
    exprs = [expr for expr in coordinates if expr is not None]
    axes = [axis for axis, expr in enumerate(exprs) if rank in expr.dims]
    if len(exprs) < len(coordinates) or len(axes) != 1 or exprs[axes[0]] != dim(rank) or table.min() < 0:
        return None
    runs = _runs(table)
    if len(runs) > MAX_RUNS or 2 * len(runs) > len(table):
        return None
    access = tuple(dim(atom.index) if axis == axes[0] else expr for axis, expr in enumerate(exprs))
    return TabulatedRead(structured, gather.operands[0], axes[0], table, atom.index, access, tuple(runs), tuple(result))


def _runs(table: Table) -> list[tuple[int, int]]:
    """The table cut where the step from one position to the next changes."""
    runs = []
    start = 0
    while start < len(table):
        stop = start + 1
        while stop < len(table) and table[stop] - table[stop - 1] == table[start + 1] - table[start]:
            stop += 1
        runs.append((start, stop))
        start = stop
    return runs


def _table(value: ir.Value) -> Table | None:
    """The elements of a tensor of rank 1 that is known now; None for others."""
    op = defining_op(value)
    if op is None:
        return None
    if op.name == "arith.constant":
        attr = op.attributes["value"]
        is_table = isinstance(attr, ir.DenseIntElementsAttr) and len(shape_of(value)) == 1
        return np.broadcast_to(np.asarray(attr).reshape(-1), shape_of(value)).astype(np.int64) if is_table else None
    structured = read_structured(op)
    if structured is None or not structured.is_elementwise or len(structured.outputs) != 1:
        return None
    if any(access != dims(1) for access in (*structured.input_accesses, *structured.output_accesses)):
        return None
    tables = [_table(operand) for operand in structured.inputs]
    return _computed(structured.body, tables, shape_of(value))


def _computed(body: ir.Block, tables: Sequence[Table | None], shape: Sequence[int]) -> Table | None:
    """What an elementwise operation computes of tables."""
    values: dict[ir.Value, Table] = {
        argument: table for argument, table in zip(body.arguments, tables, strict=False) if table is not None
    }

    def visit(value: ir.Value) -> Table | None:
        op = defining_op(value)
        if value in values or op is None:
            return values.get(value)
        if op.name == "arith.constant":
            attr = op.attributes["value"]
            return np.full(shape, int(attr.value)) if isinstance(attr, ir.IntegerAttr | ir.BoolAttr) else None
        arguments = [visit(operand) for operand in op.operands]
        found = [argument for argument in arguments if argument is not None]
        if len(found) < len(arguments):
            return None
        if op.name == "arith.select":
            return np.where(found[0] != 0, found[1], found[2])
        if op.name == "arith.cmpi" and op.attributes["predicate"].value < len(_COMPARE):
            return _COMPARE[op.attributes["predicate"].value](*found).astype(np.int64)
        if op.name in _ARITHMETIC:
            return np.asarray(_ARITHMETIC[op.name](*found), np.int64)
        return found[0] if op.name in _CASTS else None

    return visit(list(body.operations)[-1].operands[0])
