"""compose-views: a view of a view is one view (index comprehension, paper section 3.2.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from mlir import ir

from smartmem_mlir.index_maps.compose import compose
from smartmem_mlir.index_maps.cost import DEFAULT_WEIGHTS, view_cost
from smartmem_mlir.index_maps.errors import ExpressionLimitExceeded, PieceLimitExceeded
from smartmem_mlir.index_maps.separable import cost_by_choices
from smartmem_mlir.index_maps.unify import unify_pieces
from smartmem_mlir.index_maps.view import UNREAD, View
from smartmem_mlir.transforms.claims import claim, is_recorded, tell
from smartmem_mlir.transforms.ir_walk import block_operations, erase_dead
from smartmem_mlir.transforms.locations import fuse
from smartmem_mlir.transforms.pass_base import Pass
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view, write_view

COPY_COST = 8.0
"""What copying an element costs, in instructions of `index_maps.cost`: a load, a store and their share of a loop."""
MAX_SEPARABLE_PIECES = 3
"""Pieces of each of two views that may have more pieces together than the bound: of borders of two axes."""
PATIENCE = 8
"""How many views in a row are tried on a source that is too much for them. What a reshape cuts into many pieces, slices
behind it may make whole again (relative positions in attention); but a chain of a thousand reshapes whose factors do
not line up would spend its time on attempts."""

Refusals: TypeAlias = dict[ir.Value, int]
"""Sources that were too much for a view, each with the attempts that are left to the views behind it."""


def compose_views(root: ir.Operation) -> int:
    """Makes every view read tensors that are not views, as far as that costs less than the copies between them.

    A view with several users is composed into each of them: it exists only as a map, so nothing is computed twice.

    Returns:
        How many views were composed into others.
    """
    # Views of several tensors first, one generation: the slices of a roll join into one map while they still read
    # whole axes, and no longer once a reshape has been composed into each of them.
    joined = _compose_each(root, lambda view: len(view.operands) > 1, generations=1)
    composed = _compose_each(root, lambda view: True, generations=None)
    erase_dead(root)
    return joined + composed


def _compose_each(root: ir.Operation, wanted: Callable[[View], bool], generations: int | None) -> int:
    """Composes the wanted views with those that they read, in program order."""
    composed = 0
    refused: dict[ir.Value, Refusals] = {}
    for op in block_operations(root):
        if not is_view(op) or not any(_is_view_value(operand) for operand in op.operands):
            continue
        view = read_view(op)
        if not wanted(view):
            continue
        upwards = _Upwards(view, list(op.operands), refused)
        upwards.run(generations)
        value = op.results[0]
        if upwards.inlined:
            with ir.InsertionPoint(op), fuse([op.location, *upwards.locations]) as location:
                value = write_view(upwards.view, upwards.sources, op.results[0].type.element_type)
            for chain, operands, after, sources in upwards.steps:
                claim(op, chain, after, operands=operands, sources=sources)
            if value in upwards.sources:
                tell(op, "cancelled", location=location)
            op.results[0].replace_all_uses_with(value)
            op.erase()
        if value not in upwards.sources:
            refused[value] = upwards.refused
        composed += upwards.inlined
    return composed


class _Upwards:
    """One view on its way to the tensors that it comes from.

    Args:
        view: The view.
        sources: What it reads.
        known: For views that were composed before, what they were refused.
    """

    def __init__(self, view: View, sources: list[ir.Value], known: Mapping[ir.Value, Refusals]) -> None:
        self.view = view
        self.sources = sources
        self.inlined = 0
        self.refused: Refusals = {}
        self.locations: list[ir.Location] = []
        self.steps: list[tuple[list[View], list[int], View, list[int]]] = []
        """For each generation: the views, which operands they took the place of, the composition, and which operand
        of it each tensor is that the views read."""
        self._known = known

    def run(self, generations: int | None) -> None:
        """Inlines the views among the sources, one generation at a time, until none can be (or `generations` are)."""
        while generations is None or generations > 0:
            chain, places = [self.view], list[int]()
            position = 0
            while position < len(self.sources):
                inner = self._inline(position)
                if inner is not None:
                    chain.append(inner)
                    places.append(position)
                position += 1 if inner is None else len(inner.operands)
            if not places:
                break
            read = self.sources
            self.view, kept = self.view.share_operands(read)
            self.sources = [read[at] for at in kept]
            self.view = unify_pieces(self.view)
            if is_recorded():
                numbers = {value: number for number, value in enumerate(self.sources)}
                self.steps.append((chain, places, self.view, [numbers.get(value, UNREAD) for value in read]))
            generations = None if generations is None else generations - 1

    def _inline(self, position: int) -> View | None:
        """Replaces the source at `position` by what it reads, if it is a view and not too much; returns that view."""
        source = self.sources[position]
        inner = defining_op(source)
        if inner is None or not is_view(inner):
            return None
        attempts = self.refused.get(source, PATIENCE)
        view = read_view(inner) if attempts else None
        composed = _compose(self.view, view, position) if view is not None else None
        if view is None or composed is None:
            self.refused[source] = max(0, attempts - 1)
            return None
        self.view = composed
        self.sources[position : position + 1] = list(inner.operands)
        self.inlined += 1
        self.locations.append(inner.location)
        for behind, left in self._known.get(source, {}).items():
            self.refused[behind] = min(left, self.refused.get(behind, left))
        return view


def _compose(outer: View, inner: View, operand: int) -> View | None:
    """The composition, None where it costs more than both views and a copy between them, or is beyond all limits."""
    bound = view_cost(outer) + view_cost(inner) + COPY_COST
    most = 1 + int(bound / DEFAULT_WEIGHTS.piece)
    if max(len(outer.pieces), len(inner.pieces)) <= MAX_SEPARABLE_PIECES:
        most = max(most, len(outer.pieces) * len(inner.pieces))
    try:
        composed = compose(outer, inner, operand, max_pieces=most)
    except (PieceLimitExceeded, ExpressionLimitExceeded):
        return None
    return composed if cost_by_choices(composed) <= bound else None


def _is_view_value(value: ir.Value) -> bool:
    return is_view(defining_op(value))


@dataclass(frozen=True)
class ComposeViews(Pass):
    """Make a view of a view one view.

    Index maps are composed and simplified (paper, section 3.2.1), so that a chain of movements of any length costs one
    index computation. A view with several users is composed into each. A composition that costs more than both views
    and a copy between them (reshapes whose factors do not line up, many boxes) is left.
    """

    argument: ClassVar[str] = "smartmem-compose-views"
    example: ClassVar[str] = "roll_of_slices.mlir"

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        compose_views(op)
