"""Which operations a contraction takes into its kernel: the decision, nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mlir import ir

from smartmem_mlir.transforms.contraction_group import (
    ContractionGroup,
    Growth,
    add_step,
    contraction_factors,
    is_bordered,
    read_contraction_group,
    start_growth,
)
from smartmem_mlir.transforms.growth import escaping, grow
from smartmem_mlir.transforms.ir_walk import Positions, users
from smartmem_mlir.transforms.structured import read_structured
from smartmem_mlir.transforms.view_ops import is_view, read_view


def is_contraction(op: ir.Operation) -> bool:
    """Whether a group can start with the operation."""
    structured = read_structured(op)
    return structured is not None and contraction_factors(structured) is not None


def grow_contraction(contraction: ir.Operation, order: Positions) -> ContractionGroup | None:
    """The largest group around a contraction of which one value is used outside."""
    growth = start_growth(contraction)
    if growth is None:
        return None
    best = grow(contraction, order, partial(_joins, growth))
    return read_contraction_group([*best, *border_of(best)])


def border_of(members: Sequence[ir.Operation]) -> list[ir.Operation]:
    """The padding of what a group computes, when nothing else reads that: the kernel then writes the padded tensor."""
    (result,) = escaping(members)
    readers = list(users(result))
    return readers if len(readers) == 1 and is_bordered(readers[0]) else []


def _joins(growth: Growth, op: ir.Operation) -> bool:
    if is_view(op):
        return read_view(op).single_map is not None
    step = read_structured(op)
    return step is not None and add_step(growth, step)
