"""sink-views: what follows a contraction is computed in the contraction's own order.

`x + reverse(p)`, where `p` is a projection computed window by window, is `reverse(partition(x) + p)`: the addition can
be the projection's epilogue and reads the residual through a view. The view of the sum goes on: composed with the next
one, computed by a reader, or sunk over whole branches that come back to the sum, such as a feed-forward network and its
residual addition, whose rows do not mind in which order they come (paper, section 3.2: elimination across blocks).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.compose import compose
from smartmem_mlir.index_maps.expr import ZERO, dim
from smartmem_mlir.index_maps.map import IndexMap
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.transforms.access_folding import is_reshape, is_structured_read, read_behind
from smartmem_mlir.transforms.ir_walk import block_operations, erase_dead, has_one_use, users
from smartmem_mlir.transforms.pass_base import Pass, option
from smartmem_mlir.transforms.reordering import Order, can_be_reordered, order_of, reordered
from smartmem_mlir.transforms.structured import Access, StructuredOp, is_projection, read_structured, static_shape
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view, shape_of

MAX_BRANCH = 64
"""Operations that a branch may have; a feed-forward network with its normalisation has about 20."""
MAX_LOOKBACK = 32
"""Operations looked at for the contraction that an elementwise chain starts from."""


def sink_views(root: ir.Operation) -> int:
    """Moves views from the operands of operations to their results, where that saves a kernel or a reordered read.

    Returns:
        Over how many operations views were moved.
    """
    sunk = 0
    operations = block_operations(root)
    positions = {result: at for at, op in enumerate(operations) for result in op.results}
    settled: set[int] = set()
    for at, op in enumerate(operations):
        if at in settled:
            continue
        branch = _Branch(positions)
        if branch.grow(op):
            sunk += branch.sink()
        settled |= branch.settled
    erase_dead(root)
    return sunk


class _Branch:
    """Operations that take over the order of what is behind a view, all of them or none.

    A branch starts at an operation that reads a view and goes on through all users until each way ends at a junction:
    an elementwise operation that brings the result of a contraction together with another tensor.

    Args:
        positions: Where the operations stand in the program, by result. Those that are created later have no place
            and join no branch.
    """

    def __init__(self, positions: dict[ir.Value, int]) -> None:
        self._positions = positions
        self._members: list[tuple[StructuredOp, Order]] = []
        self._views: dict[ir.Value, View] = {}
        self.settled: set[int] = set()
        """Positions of all that was looked at. What one branch had to give up would stop another one too."""

    def grow(self, op: ir.Operation) -> bool:
        """Takes in `op` and all that has to follow; whether that is legal and moves less. Changes nothing."""
        first = read_structured(op)
        if first is None or not any(_moving_view(value) for value in first.inputs):
            return False
        pending = {self._positions[op.results[0]]: op}
        while pending:
            # In program order: all that the branch gives an operation is known when it is looked at.
            followers = self._add(pending.pop(min(pending)))
            if followers is None or len(self._members) > MAX_BRANCH:
                return False
            for follower in followers:
                at = self._positions.get(follower.results[0]) if len(follower.results) == 1 else None
                if at is None or follower.block != op.block:
                    return False
                pending[at] = follower
        return True

    def sink(self) -> int:
        """Rewrites what `grow` took in; how many operations that were."""
        for op, order in self._members:
            op.op.results[0].replace_all_uses_with(reordered(op, order))
        for op, _ in reversed(self._members):
            del self._positions[op.op.results[0]]
            op.op.erase()
        return len(self._members)

    def _add(self, op: ir.Operation) -> list[ir.Operation] | None:
        """Takes in one operation; the users that have to follow it, None if the branch is not to be."""
        result = op.results[0]
        if is_view(op):
            reshape = read_view(op)
            if not is_reshape(reshape):
                return None
            self._views[result] = compose(reshape, self._views[op.operands[0]])
            return list(users(result))
        self.settled.add(self._positions[result])
        structured = read_structured(op)
        if structured is None or not can_be_reordered(structured):
            return None
        junction = _is_junction(structured)
        for number, value in enumerate(structured.inputs):
            view = self._view_of(value)
            if view is None or (junction and not _follows_contraction(value)):
                continue
            order = order_of(structured, number, view)
            if order is None or self._moved_after(structured, order) > (_moved_before(structured) if junction else 0):
                continue
            self._members.append((structured, order))
            self._views[result] = order.result_view
            if not junction:
                return list(users(result))
            return [] if _is_read_through_views(result) else None
        return None

    def _view_of(self, value: ir.Value) -> View | None:
        """What `value` will be a view of, or is one that moves elements."""
        return self._views.get(value) or _moving_view(value)

    def _moved_after(self, op: StructuredOp, order: Order) -> int:
        """Elements that the reordered operation would read through views that move them."""
        return sum(
            0 if is_projection(read) else self._moved(value, read, order.extents)
            for value, read in zip(op.inputs, map(order.read, op.input_accesses), strict=True)
        )

    def _source(self, value: ir.Value, read: Access, extents: Sequence[int]) -> tuple[ir.Value, Access]:
        """As `through_views`, ending at values that the branch will make views of."""
        while value not in self._views:
            op = defining_op(value)
            single = read_view(op).single_map if op is not None and is_view(op) else None
            if op is None or single is None:
                return value, read
            behind = read_behind(single, read, extents)
            if behind is None:
                return value, read
            value, read = op.operands[0], behind
        planned = self._views[value].single_map
        assert planned is not None
        return value, _composed(planned, read, extents)

    def _moved(self, value: ir.Value, read: Access, extents: Sequence[int]) -> int:
        """Elements of `value`, read like this, that come from another place than the order of memory says; all or 0."""
        value, read = self._source(value, read, extents)
        planned = self._views.get(value)
        shape = shape_of(value) if planned is None else planned.operands[0]
        used = sorted(set().union(*(expr.dims for expr in read)))
        renumber = [dim(used.index(d)) if d in used else ZERO for d in range(len(extents))]
        view = View.mapped([extents[d] for d in used], shape, [expr.substitute(renumber) for expr in read])
        return 0 if _keeps_order(view) else view.box.volume


def _composed(outer: IndexMap, read: Access, extents: Sequence[int]) -> Access:
    return simplify_exprs([expr.substitute(read) for expr in outer.exprs], Box.of(extents))


def _keeps_order(view: View) -> bool:
    return is_reshape(view) or is_structured_read(view)


def _moving_view(value: ir.Value) -> View | None:
    """The view that `value` is, if it reads one tensor in another order."""
    op = defining_op(value)
    if op is None or not is_view(op):
        return None
    view = read_view(op)
    return None if view.single_map is None or _keeps_order(view) else view


def _moved_before(op: StructuredOp) -> int:
    """Elements that the operation reads through views that move them."""
    views = (_moving_view(value) for value in op.inputs)
    return sum(view.box.volume for view in views if view is not None)


def _whole_inputs(op: StructuredOp) -> list[ir.Value]:
    """The inputs as large as the result: no broadcasts."""
    whole = prod(op.extents)
    return [value for value in op.inputs if prod(static_shape(value.type) or ()) == whole]


def _is_junction(op: StructuredOp) -> bool:
    """Whether the operation brings a contraction's result and another tensor together, element by element."""
    whole = _whole_inputs(op)
    return op.is_elementwise and len(set(whole)) > 1 and any(_follows_contraction(value) for value in whole)


def _follows_contraction(value: ir.Value) -> bool:
    """Whether the value is a contraction's result but for views and elementwise operations: the contraction's epilogue.

    Operations with several large inputs end the search: what they compute is stored anyway.
    """
    for _ in range(MAX_LOOKBACK):
        op = defining_op(value)
        if op is None:
            return False
        if is_view(op):
            if len(op.operands) != 1:
                return False
            value = op.operands[0]
            continue
        structured = read_structured(op)
        if structured is None:
            return False
        if structured.is_contraction:
            return True
        whole = _whole_inputs(structured)
        if not structured.is_elementwise or len(whole) != 1:
            return False
        value = whole[0]
    return False


def _is_read_through_views(value: ir.Value) -> bool:
    """Whether every user has a view already or can have one: it composes, or the user computes the index."""
    for user in users(value):
        if is_view(user):
            if is_reshape(read_view(user)) and not _is_read_through_views(user.results[0]):
                return False
            continue
        structured = read_structured(user)
        if structured is None or structured.is_contraction:
            return False
    return True


def sink_reshapes(root: ir.Operation) -> int:
    """Moves reshapes of contractions' results behind the elementwise operations that follow.

    Contraction and epilogue then have one iteration space, and no reshape stands between them where they are to be one
    kernel.

    Returns:
        Over how many operations reshapes were moved.
    """
    sunk = 0
    for op in block_operations(root):
        structured = read_structured(op)
        if structured is None or not structured.is_elementwise or not can_be_reordered(structured):
            continue
        for number, value in enumerate(structured.inputs):
            reshape = _reshape_behind(value)
            if reshape is None or reshape.is_identity():
                continue
            order = order_of(structured, number, reshape)
            if order is not None:
                op.results[0].replace_all_uses_with(reordered(structured, order))
                op.erase()
                sunk += 1
                break
    erase_dead(root)
    return sunk


def _reshape_behind(value: ir.Value) -> View | None:
    """The value as a reshape of what a contraction or its epilogue computes for it alone."""
    if not _follows_contraction(value):
        return None
    view = View.identity(shape_of(value))
    while has_one_use(value):
        op = defining_op(value)
        if op is None or not is_view(op):
            return view if is_reshape(view) else None
        view, value = compose(view, read_view(op)), op.operands[0]
    return None


@dataclass(frozen=True)
class SinkViews(Pass):
    """Move views of what contractions compute behind the operations that follow.

    A residual addition joins the projection whose windows it undoes and reads the residual through a view; the view of
    the sum goes on to whatever reads it. It sinks over a whole branch, normalisation and contractions included, where
    the branch comes back to the sum.
    """

    argument: ClassVar[str] = "smartmem-sink-views"
    example: ClassVar[str] = "residual_of_windows.mlir"

    reshapes: bool = option(False, "Move only views that keep the order of memory, over the contraction's epilogue.")

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        if self.reshapes:
            sink_reshapes(op)
        else:
            sink_views(op)
