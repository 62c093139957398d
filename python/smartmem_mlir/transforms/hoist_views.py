"""hoist-views: a view of what a normalisation or an elementwise chain computes becomes a view of what it reads.

A view commutes with any operation that treats the elements it moves alike: the transpose of a sum is the sum of the
transposes, and windows of a layer norm are the layer norm of windows. So in front of a contraction that cannot read
through a view (a rotation leaves a remainder that no iteration space absorbs) the producers compute in the order that
the contraction wants, and the view ends up where an index is computed once a row: at the reads of the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from math import prod
from typing import ClassVar, TypeAlias

from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import Expr, dim
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.transforms.access_folding import (
    is_reshape,
    is_structured_read,
    projected_read,
    reads_index,
    through_views,
)
from smartmem_mlir.transforms.claims import claim_reread, claim_rewritten, tell, views_above
from smartmem_mlir.transforms.ir_walk import block_operations, erase_dead, is_unused, users
from smartmem_mlir.transforms.locations import fuse
from smartmem_mlir.transforms.pass_base import Pass
from smartmem_mlir.transforms.structured import (
    Access,
    StructuredOp,
    build_generic,
    coordinates_of_dims,
    feeds_contraction,
    is_projection,
    read_structured,
    splat_init,
    unbounded_dims,
)
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view, write_view

Cluster: TypeAlias = dict[ir.Operation, StructuredOp | None]
"""Operations that may move, read as structured operations; None for a view, which is composed into what moves."""


def hoist_views(root: ir.Operation, wanted: Callable[[ir.Operation], bool]) -> int:
    """Hoists views over the operations that compute their sources.

    Args:
        root: Where to look.
        wanted: Which views to hoist; asked before each one.

    Returns:
        How many views were hoisted.
    """
    hoisted = 0
    for op in block_operations(root):
        if not is_view(op) or len(op.operands) != 1:
            continue
        view = read_view(op)
        if view.single_map is None or is_reshape(view) or is_structured_read(view) or not wanted(op):
            continue
        cluster = _movable_cluster(op)
        if not any(cluster.values()):
            continue
        with ir.InsertionPoint(op), op.location:
            value = _Hoist(cluster).view_of(view, op.operands[0])
        tell(op, "reordered", [each for each, structured in cluster.items() if structured is not None])
        op.results[0].replace_all_uses_with(value)
        hoisted += 1
        # Users before what they use: whatever only the view needed is gone before the next view is looked at.
        for each in (op, *cluster):
            if is_unused(each):
                each.erase()
    erase_dead(root)
    return hoisted


def _movable_cluster(view_op: ir.Operation) -> Cluster:
    """The operations above the view whose every user is the view or in the cluster: moving them duplicates nothing.

    Users come before what they use.
    """
    cluster: Cluster = {}
    rejected: set[ir.Operation] = set()
    pending = [defining_op(view_op.operands[0])]
    while pending:
        # Latest first, so that the users of an operation have been decided on before it is.
        pending.sort(key=cmp_to_key(_program_order))
        op = pending.pop()
        if op is None or op in cluster or op in rejected or op.block != view_op.block:
            continue
        if not all(user == view_op or user in cluster for user in users_of(op)):
            rejected.add(op)
            continue
        structured = read_structured(op)
        if structured is not None and _is_movable(structured):
            cluster[op] = structured
            pending.extend(defining_op(value) for value in structured.inputs)
        elif is_view(op):
            cluster[op] = None
            pending.extend(defining_op(value) for value in op.operands)
        else:
            rejected.add(op)
    return cluster


def _program_order(a: ir.Operation | None, b: ir.Operation | None) -> int:
    if a is None or b is None or a == b or a.block != b.block:
        return (a is not None) - (b is not None)
    return -1 if a.is_before_in_block(b) else 1


def users_of(op: ir.Operation) -> list[ir.Operation]:
    """Every user of every result."""
    return [user for result in op.results for user in users(result)]


def _is_movable(op: StructuredOp) -> bool:
    return (
        len(op.outputs) == 1
        and not op.is_contraction
        and not reads_index(op)
        and all(is_projection(access) for access in op.accesses)
    )


class _Hoist:
    """Creates, at the insertion point, views of values by recomputing their producers in the view's order."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._made: dict[tuple[View, ir.Value], ir.Value] = {}

    def view_of(self, view: View, value: ir.Value) -> ir.Value:
        """`view` of `value`; two requests for the same are one value."""
        key = (view, value)
        if key not in self._made:
            self._made[key] = self._create(view, value)
        return self._made[key]

    def _create(self, view: View, value: ir.Value) -> ir.Value:
        producer = defining_op(value)
        op = self._cluster.get(producer) if producer is not None else None
        rebuilt = self._rebuild(op, view) if op is not None else None
        return rebuilt if rebuilt is not None else write_view(view, [value], value.type.element_type)

    def _rebuild(self, op: StructuredOp, view: View) -> ir.Value | None:
        """The operation over the view's index space, or None when that would compute more or be no operation."""
        single = view.single_map
        if single is None:
            return None
        old_dims = _old_dims(op, single.exprs, len(view.shape))
        extents = (*view.shape, *(e for e, reduced in zip(op.extents, op.reductions, strict=True) if reduced))
        if prod(extents) > prod(op.extents):
            return None
        inputs, accesses, claimed = [], [], []
        for value, access in zip(op.inputs, op.input_accesses, strict=True):
            wanted = simplify_exprs([expr.substitute(old_dims) for expr in access], Box.of(extents))
            if not isinstance(value.type, ir.RankedTensorType):
                inputs.append(value)
                accesses.append(wanted)
                continue
            behind, made, source, read = self._read(value, wanted, extents)
            claimed.append((value, access, behind, made, read))
            inputs.append(source)
            accesses.append(read)
        output = splat_init(op.outputs[0], view.shape)
        if output is None:
            return None
        accesses.append(tuple(dim(i) for i in range(len(view.shape))))
        if unbounded_dims(accesses, len(extents)):
            return None
        reductions = [False] * len(view.shape) + [True] * sum(op.reductions)
        claim_reread(op, extents, old_dims, claimed)
        claim_rewritten(op, extents, old_dims, view)
        with op.op.location:
            return build_generic(inputs, [output], accesses, reductions, op.body).results[0]

    def _read(
        self, value: ir.Value, wanted: Access, extents: Sequence[int]
    ) -> tuple[ir.Value, View | None, ir.Value, Access]:
        """How to read `value` where it is wanted: the tensor behind the views in front of it, the view of that to read
        (None: itself), this view as a tensor, and the projection that reads it."""
        behind, wanted = through_views(value, wanted, extents)
        made: list[View] = []

        def view_of(view: View, source: ir.Value) -> ir.Value:
            made.append(view)
            return self.view_of(view, source)

        with fuse([ir.Location.current, *(op.location for op in views_above(value, behind))]):
            source, read = projected_read(behind, wanted, extents, view_of)
        return behind, made[0] if made else None, source, read


def _old_dims(op: StructuredOp, coordinates: Sequence[Expr], rank: int) -> list[Expr]:
    """Each dimension of the operation over the new space: the view's dimensions, then the reduced ones."""
    placed = coordinates_of_dims(op.output_accesses[0], len(op.extents))
    reduced = iter(range(rank, rank + sum(op.reductions)))
    return [
        dim(next(reduced)) if is_reduced else expr.substitute(coordinates)
        for expr, is_reduced in zip(placed, op.reductions, strict=True)
    ]


@dataclass(frozen=True)
class HoistViews(Pass):
    """Move views in front of contractions up to the reads of what computes their source.

    Normalisations and elementwise chains are recomputed in the view's order, so that a layer norm writes shifted
    windows directly. Nothing is computed twice: an operation moves only if all of its users do.
    """

    argument: ClassVar[str] = "smartmem-hoist-views"
    example: ClassVar[str] = "layer_norm_windows.mlir"

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        hoist_views(op, lambda view: feeds_contraction(view.results[0]))
