"""form-groups: attention, or a contraction and what can be computed from its sums, becomes one kernel.

The group takes the elementwise operations that follow, in program order, as long as each element they compute comes
from one sum and from values that do not depend on the group: legality is dependence, not a table of operator kinds. It
takes the views between them and those that its operands are read through, so that the rows of a window partition are
gathered by address arithmetic and a residual addition that reads windows back writes each row where it belongs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeAlias

from mlir import ir

from smartmem_mlir.transforms.attention_group import AttentionGroup
from smartmem_mlir.transforms.attention_growth import grow_attention, grow_linear_attention, possible_scores
from smartmem_mlir.transforms.contraction_group import ContractionGroup
from smartmem_mlir.transforms.contraction_growth import border_of, grow_contraction, is_contraction
from smartmem_mlir.transforms.growth import grow
from smartmem_mlir.transforms.ir_walk import Positions, block_operations, erase_dead, is_unused
from smartmem_mlir.transforms.linear_attention_group import LinearAttentionGroup
from smartmem_mlir.transforms.map_group import copy_into_borders, grow_map, is_map
from smartmem_mlir.transforms.outline import outline
from smartmem_mlir.transforms.pass_base import Pass, option
from smartmem_mlir.transforms.row_group import RowGroup, RowGrowth, read_row_group
from smartmem_mlir.transforms.structured import is_structured
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view

Group: TypeAlias = ContractionGroup | AttentionGroup | LinearAttentionGroup | RowGroup


@dataclass(frozen=True)
class _Kind:
    """A kind of group.

    Args:
        starts: Whether a group may start with an operation.
        grow: The largest group that starts with it.
    """

    starts: Callable[[ir.Operation], bool]
    grow: Callable[[ir.Operation, Positions], Group | None]


def form_groups(
    root: ir.Operation, row_borders: bool = False, maps: bool = False, linear_attention: bool = False
) -> int:
    """Puts each attention, and each other contraction with what follows it, into a `smartmem.group`.

    Args:
        root: The module.
        row_borders: Whether kernels over rows write a border around their result.
        maps: Whether what is elementwise and belongs to nothing gets groups too, and what only pads.
        linear_attention: Whether two contractions, the first of which computes a small factor of the second, are one
            group.

    Returns:
        How many groups were made.
    """
    formed = form_attention_groups(root)
    if linear_attention:
        formed += form_linear_attention_groups(root)
    formed += form_contraction_groups(root) + form_row_groups(root, row_borders)
    return formed + form_map_groups(root) if maps else formed


def form_attention_groups(root: ir.Operation) -> int:
    """Puts each attention into a `smartmem.group`; returns how many there are."""
    scores = possible_scores(block_operations(root))
    return _form(root, _Kind(lambda op: is_contraction(op) and op.results[0] in scores, grow_attention))


def form_linear_attention_groups(root: ir.Operation) -> int:
    """Puts each attention without a softmax into a `smartmem.group`; returns how many there are."""
    return _form(root, _Kind(is_contraction, grow_linear_attention))


def form_contraction_groups(root: ir.Operation) -> int:
    """Puts each contraction that no group has, with what follows it, into one; returns how many there are."""
    return _form(root, _Kind(is_contraction, grow_contraction))


def form_row_groups(root: ir.Operation, borders: bool = False) -> int:
    """Puts each reduction that no group has, with what is computed from it and the same rows, into one.

    Args:
        root: The module.
        borders: Whether padding of the result joins.

    Returns:
        How many groups were made.
    """
    return _form(root, _Kind(is_structured, partial(_grow_rows, borders=borders)))


def form_map_groups(root: ir.Operation) -> int:
    """Puts elementwise operations, and paddings, that no group has into groups; returns how many there are."""
    copy_into_borders(root)
    return _form(root, _Kind(is_map, grow_map))


def _grow_rows(reduction: ir.Operation, order: Positions, borders: bool) -> RowGroup | None:
    growth = RowGrowth.start(reduction)
    if growth is None:
        return None
    members = grow(reduction, order, growth.add)
    return read_row_group([*members, *(border_of(members) if borders else [])])


def _form(root: ir.Operation, kind: _Kind) -> int:
    """Forms the groups of a kind, in program order: what one has taken is gone for those after it."""
    operations = block_operations(root)
    order = Positions(operations)
    taken: set[int] = set()
    formed = 0
    for position, op in enumerate(operations):
        if position in taken or not kind.starts(op):
            continue
        group = kind.grow(op, order)
        if group is None:
            continue
        places = [order.of(member) for member in group.members]
        taken.update(places)
        order.add(_outline(group), places[-1])
        _erase_unused(group)
        formed += 1
    erase_dead(root)
    return formed


def _outline(group: Group) -> ir.Operation:
    """Makes a `smartmem.group` of the group's members, which computes for all that are not among them."""
    members = _with_operand_views(group)
    result = group.output.value
    made = outline(members, result)
    for use in list(result.uses):
        if use.owner.operation not in members:
            use.owner.operation.operands[use.operand_number] = made.results[0]
    return made


def _erase_unused(group: Group) -> None:
    """At once: a later group must not take what this one has computed."""
    for op in reversed(group.members):
        if is_unused(op):
            op.erase()


def _with_operand_views(group: Group) -> list[ir.Operation]:
    """The members and, before them, the views and initial values that they read."""
    found: list[ir.Operation] = []
    seen = set(group.members)
    joined = _joined(group)

    def visit(op: ir.Operation) -> None:
        for operand in op.operands:
            inner = defining_op(operand)
            if inner is None or inner in seen:
                continue
            folded = is_view(inner) and read_view(inner).single_map is not None
            if folded or inner in joined or inner.name in ("tensor.empty", "linalg.fill"):
                seen.add(inner)
                visit(inner)
                found.append(inner)

    ordered: list[ir.Operation] = []
    for op in group.members:
        visit(op)
        ordered += found
        found.clear()
        ordered.append(op)
    return ordered


def _joined(group: Group) -> set[ir.Operation]:
    """What the kernel computes as it reads, besides views of one map."""
    if isinstance(group, LinearAttentionGroup):
        return set(group.prologue)
    if not isinstance(group, ContractionGroup):
        return set()
    scale = () if group.scale is None else (group.scale.op,)
    return {*scale, *(() if group.lhs.view is None else (group.lhs.view,))}


@dataclass(frozen=True)
class FormGroups(Pass):
    """Put what one kernel can compute into a group: attention, contractions, normalisations.

    Attention is a contraction, elementwise operations, a softmax over some of its dimensions (the keys) and a
    contraction that sums over these; without a softmax, a contraction whose result another one multiplies. Other
    contractions take what follows them elementwise. Groups are what kernel generators lower; a group that none of them
    takes is dissolved again.
    """

    argument: ClassVar[str] = "smartmem-form-groups"
    example: ClassVar[str] = "residual_of_windows.mlir"

    row_borders: bool = option(False, "kernels over rows write the border around their result")
    maps: bool = option(False, "elementwise operations and paddings that belong to nothing else get groups as well")
    linear_attention: bool = option(False, "attention without a softmax is one group: queries, and keys times values")

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        form_groups(op, self.row_borders, self.maps, self.linear_attention)
