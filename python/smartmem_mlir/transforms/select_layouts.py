"""select-layouts: each tensor is stored with its dimensions in the order that its readers and its writer want.

The orders are chosen for the whole function (`layouts`: the cheapest choice by a cost model, or the paper's rule) and
applied at once. Structured operations and views take operands and results of any order, so a chosen order costs nothing
where both sides follow it. Any other operation, the function's arguments and its results keep the order as written; a
view stands where the two meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from mlir import ir

from smartmem_mlir.errors import OptionError
from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import Expr, dim
from smartmem_mlir.index_maps.view import Piece, View
from smartmem_mlir.layouts.decision import DEFAULT_TIME_LIMIT_S, LayoutDecision, Method, decide
from smartmem_mlir.layouts.graph import Order, identity_order
from smartmem_mlir.layouts.rates import Rates
from smartmem_mlir.transforms.claims import access_view, claim, is_recorded
from smartmem_mlir.transforms.evidence import current_evidence
from smartmem_mlir.transforms.ir_walk import block_operations, erase_dead
from smartmem_mlir.transforms.layout_graph import LayoutGraph
from smartmem_mlir.transforms.pass_base import Pass, option
from smartmem_mlir.transforms.structured import Access, StructuredOp, build_generic, read_structured, splat_init
from smartmem_mlir.transforms.view_ops import is_view, read_view, shape_of, write_view

MAX_TIME_LIMIT_S = 3600.0

RATES = "smartmem.layout_rates"
"""Module attribute: the fields of `layouts.rates.Rates` that the target gives, as a dictionary of f64."""


def select_layouts(
    root: ir.Operation, method: Method = "solver", time_limit_s: float = DEFAULT_TIME_LIMIT_S
) -> list[LayoutDecision]:
    """Chooses and applies orders.

    Args:
        root: The module.
        method: How to choose; see `layouts.decision`.
        time_limit_s: Seconds that the solver may take, for each function.

    Returns:
        What was decided, for each function.
    """
    rates = _rates(root)
    decisions = []
    for operations in _functions(block_operations(root)):
        read = LayoutGraph(operations)
        chosen, decision = decide(read.graph, method, rates, time_limit_s)
        decisions.append(decision)
        rewriter = _Rewriter(_Orders(read, chosen))
        for op in operations:
            rewriter.rewrite(op)
    erase_dead(root)
    evidence = current_evidence()
    if evidence is not None:
        evidence.layouts += decisions
    return decisions


def _functions(operations: Sequence[ir.Operation]) -> list[list[ir.Operation]]:
    """The operations of each function, apart."""
    found: list[list[ir.Operation]] = []
    for op in operations:
        if not found or found[-1][-1].name == "func.return":
            found.append([])
        found[-1].append(op)
    return found


def _rates(root: ir.Operation) -> Rates:
    if RATES not in root.attributes:
        return Rates()
    given = {named.name: named.attr.value for named in ir.DictAttr(root.attributes[RATES])}
    return Rates.of(given)


class _Orders:
    """The order chosen for each value."""

    def __init__(self, read: LayoutGraph, orders: Sequence[Order]) -> None:
        self._orders = {
            value: orders[number]
            for value, number in read.values.items()
            if orders[number] != identity_order(len(orders[number]))
        }

    def of(self, value: ir.Value) -> Order:
        """The order of a tensor value."""
        return self._orders.get(value) or identity_order(len(shape_of(value)))

    def is_permuted(self, value: ir.Value) -> bool:
        """Whether the tensor is stored in another order than it is written in."""
        return value in self._orders


class _Rewriter:
    def __init__(self, orders: _Orders) -> None:
        self._orders = orders
        self._stored: dict[ir.Value, ir.Value] = {}
        self._restored: dict[ir.Value, ir.Value] = {}
        self.rewritten = 0

    def rewrite(self, op: ir.Operation) -> None:
        values = [*op.operands, *op.results]
        if not any(self._orders.is_permuted(value) for value in values):
            return
        structured = read_structured(op)
        with ir.InsertionPoint(op), op.location:
            if is_view(op):
                results = [self._view(op)]
            elif structured is not None:
                made = self._structured(structured)
                if made is None:
                    self._restore_operands(op)
                    return
                results = made
            else:
                self._restore_operands(op)
                return
        self.rewritten += 1
        for old, new in zip(op.results, results, strict=True):
            if self._orders.is_permuted(old):
                self._stored[old] = new
            else:
                old.replace_all_uses_with(new)
        # Permuted results are dead once every user is rewritten; erase_dead takes them in the end.

    def _source(self, value: ir.Value) -> ir.Value:
        """The tensor as it is stored."""
        return self._stored.get(value, value)

    def _order(self, value: ir.Value) -> Order:
        return self._orders.of(value) if value in self._stored else identity_order(len(shape_of(value)))

    def _view(self, op: ir.Operation) -> ir.Value:
        view = read_view(op)
        result = self._orders.of(op.results[0])
        position = {axis: i for i, axis in enumerate(result)}
        renamed = [dim(position[axis]) for axis in range(len(view.shape))]
        pieces = []
        for piece in view.pieces:
            box = Box(tuple(piece.box.lo[a] for a in result), tuple(piece.box.hi[a] for a in result))
            exprs: tuple[Expr, ...] = ()
            if isinstance(piece.source, int):
                order = self._order(op.operands[piece.source])
                exprs = tuple(piece.exprs[axis].substitute(renamed) for axis in order)
            pieces.append(Piece(box, piece.source, exprs))
        sources = [self._source(operand) for operand in op.operands]
        permuted = View.of([view.shape[a] for a in result], [shape_of(s) for s in sources], pieces)
        if is_recorded():
            stored = [self._stored_as(operand) for operand in op.operands]
            numbers = range(len(stored))
            claim(op, [_reordering(view.shape, result), view, *stored], permuted, operands=[0, *numbers])
        return write_view(permuted, sources, op.results[0].type.element_type)

    def _structured(self, op: StructuredOp) -> list[ir.Value] | None:
        orders = [self._orders.of(result) for result in op.op.results]
        outputs = []
        for output, order in zip(op.outputs, orders, strict=True):
            shape = [shape_of(output)[axis] for axis in order]
            made = splat_init(output, shape)
            outputs.append(self._permuted(output, order) if made is None else made)
        inputs = [self._source(value) for value in op.inputs]
        accesses = [
            tuple(access[axis] for axis in self._order(value))
            if isinstance(value.type, ir.RankedTensorType)
            else access
            for value, access in zip(op.inputs, op.input_accesses, strict=True)
        ]
        accesses += [
            tuple(access[axis] for axis in order) for access, order in zip(op.output_accesses, orders, strict=True)
        ]
        # Loops in the order of the first result, so that code generators see a plain innermost dimension.
        written = [min(expr.dims) for expr in accesses[len(op.inputs)] if expr.dims]
        loops = written + [d for d in range(len(op.extents)) if d not in written]
        if any(i.operation.name == "linalg.index" for i in op.body.operations):
            loops = list(range(len(op.extents)))
        renamed = [dim(loops.index(d)) for d in range(len(op.extents))]
        accesses = [tuple(expr.substitute(renamed) for expr in access) for access in accesses]
        self._claim_accesses(op, [op.extents[d] for d in loops], renamed, accesses)
        return list(
            build_generic(
                inputs,
                outputs,
                accesses,
                [op.reductions[d] for d in loops],
                op.body,
            ).results
        )

    def _claim_accesses(
        self, op: StructuredOp, space: Sequence[int], old_dims: Sequence[Expr], accesses: Sequence[Access]
    ) -> None:
        """Records that the operation reads and writes the same elements where they are stored now."""
        if not is_recorded():
            return
        entered = access_view(space, op.extents, old_dims)
        values = (*op.inputs, *op.op.results)
        for value, before, now in zip(values, (*op.input_accesses, *op.output_accesses), accesses, strict=True):
            if isinstance(value.type, ir.RankedTensorType):
                order = self._orders.of(value) if value in op.op.results else self._order(value)
                stored = _stored(shape_of(value), order)
                chain = [entered, access_view(op.extents, shape_of(value), before), stored]
                claim(op.op, chain, access_view(space, stored.operands[0], now))

    def _stored_as(self, value: ir.Value) -> View:
        """A tensor as a view of what is stored."""
        return _stored(shape_of(value), self._order(value))

    def _permuted(self, value: ir.Value, order: Order) -> ir.Value:
        """`value` stored in this order, as a view of what is there."""
        have = self._order(value)
        source = self._source(value)
        return _permuting_view(source, [have.index(axis) for axis in order])

    def _restore_operands(self, op: ir.Operation) -> None:
        for i, operand in enumerate(op.operands):
            if operand in self._stored:
                if operand not in self._restored:
                    order = self._orders.of(operand)
                    self._restored[operand] = _permuting_view(
                        self._stored[operand], [order.index(axis) for axis in range(len(order))]
                    )
                op.operands[i] = self._restored[operand]


def _stored(shape: Sequence[int], order: Order) -> View:
    """A tensor as a view of itself with its axes in another order."""
    return View.mapped(shape, [shape[axis] for axis in order], [dim(axis) for axis in order])


def _reordering(shape: Sequence[int], order: Order) -> View:
    """A tensor with its axes in another order, as a view of it as it is written."""
    return View.mapped([shape[axis] for axis in order], shape, [dim(order.index(axis)) for axis in range(len(order))])


def _permuting_view(source: ir.Value, axes: Sequence[int]) -> ir.Value:
    """The transposition whose axis i is axis `axes[i]` of the source."""
    shape = shape_of(source)
    exprs = [dim(list(axes).index(axis)) for axis in range(len(axes))]
    return write_view(View.mapped([shape[a] for a in axes], shape, exprs), [source], source.type.element_type)


@dataclass(frozen=True)
class SelectLayouts(Pass):
    """Store each tensor in the order of dimensions that its readers and its writer want.

    `layouts=solver` minimises a model of the time that reads, writes, copies and kernels take, over all tensors
    together and with a proof; `layouts=paper` has a contraction's result contiguous along the dimension of its second
    factor, which the next contraction reduces over, and lets what follows take the order over.
    """

    argument: ClassVar[str] = "smartmem-select-layouts"
    example: ClassVar[str] = "convolutions.mlir"

    layouts: Literal["solver", "paper"] = option(
        "solver", "how to choose: the cheapest layouts of all, or the paper's rule"
    )
    time_limit_s: float = option(DEFAULT_TIME_LIMIT_S, "seconds that the solver may take")

    def __post_init__(self) -> None:
        if not 0 < self.time_limit_s <= MAX_TIME_LIMIT_S:
            raise OptionError(f"time-limit-s is {self.time_limit_s:g}", hint=f"give 0 to {MAX_TIME_LIMIT_S:g} seconds")

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        select_layouts(op, self.layouts, self.time_limit_s)
