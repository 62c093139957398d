"""compose-views: a view of a view is one view (index comprehension, paper section 3.2.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from smartmem_mlir.index_maps.compose import compose
from smartmem_mlir.index_maps.errors import ExpressionLimitExceeded, PieceLimitExceeded
from smartmem_mlir.index_maps.unify import unify_pieces
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.transforms.ir_walk import block_operations, erase_dead
from smartmem_mlir.transforms.pass_base import Pass
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view, value_key, write_view


def compose_views(root: ir.Operation) -> int:
    """Makes every view read tensors that are not views, as far as the limits on pieces and expressions allow.

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
    for op in block_operations(root):
        if not is_view(op) or not any(_is_view_value(operand) for operand in op.operands):
            continue
        view = read_view(op)
        if not wanted(view):
            continue
        view, sources, inlined = _compose_upwards(view, list(op.operands), generations)
        if not inlined:
            continue
        with ir.InsertionPoint(op), op.location:
            value = write_view(view, sources, op.results[0].type.element_type)
        op.results[0].replace_all_uses_with(value)
        op.erase()
        composed += inlined
    return composed


def _compose_upwards(view: View, sources: list[ir.Value], generations: int | None) -> tuple[View, list[ir.Value], int]:
    """Inlines the views among `sources`, one generation at a time, until none can be (or `generations` are)."""
    inlined = 0
    refused: set[tuple[int, int]] = set()
    while generations is None or generations > 0:
        progress = False
        position = 0
        while position < len(sources):
            source = sources[position]
            inner = defining_op(source)
            width = 1
            if inner is not None and is_view(inner) and value_key(source) not in refused:
                try:
                    view = compose(view, read_view(inner), position)
                except (PieceLimitExceeded, ExpressionLimitExceeded):
                    refused.add(value_key(source))
                else:
                    sources[position : position + 1] = list(inner.operands)
                    width = len(inner.operands)
                    inlined += 1
                    progress = True
            position += width
        if not progress:
            break
        view, kept = view.share_operands([value_key(source) for source in sources])
        sources = [sources[at] for at in kept]
        view = unify_pieces(view)
        generations = None if generations is None else generations - 1
    return view, sources, inlined


def _is_view_value(value: ir.Value) -> bool:
    return is_view(defining_op(value))


@dataclass(frozen=True)
class ComposeViews(Pass):
    """Make a view of a view one view.

    Index maps are composed and simplified (paper, section 3.2.1), so that a chain of movements of any length costs one
    index computation. A view with several users is composed into each.
    """

    argument: ClassVar[str] = "smartmem-compose-views"
    example: ClassVar[str] = "roll_of_slices.mlir"

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        compose_views(op)
