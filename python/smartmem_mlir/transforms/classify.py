"""classify: the operator group of each operation, from its index maps and iterator types.

The paper sorts operators into four groups by hand and leaves a rule to future work (section 3.1). Here the rule is:

- An operation that computes may store its result in any order: its output is *variable*. One that only moves elements
  is defined by where they go: *fixed*.
- An operation that computes depends on its input's layout (*ILD*) if it uses elements again, which is what a reduction
  dimension says, or if it reads operands in different orders, so that no one order suits all of them. It is *ILI* if
  every operand is read in the order of the others.
- An operation that moves depends on its input's layout if it reorders or regroups axes. One that selects (a slice, a
  gather at given positions) takes elements as they come.

Several operations that stand for one operator (a softmax) are of the group of the hardest among them, in the paper's
order of optimisation complexity.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Final, Literal, TypeAlias

from mlir import ir

from smartmem_mlir.index_maps.expr import Dim
from smartmem_mlir.index_maps.view import Fill, View
from smartmem_mlir.transforms.ir_walk import block_operations
from smartmem_mlir.transforms.movement import as_view, why_not_view
from smartmem_mlir.transforms.pass_base import Pass
from smartmem_mlir.transforms.structured import Access, StructuredOp, read_structured
from smartmem_mlir.transforms.view_ops import is_view, read_view

OpClass: TypeAlias = Literal["ild_variable", "ili_variable", "ild_fixed", "ili_fixed"]

COMPLEXITY: Final[tuple[OpClass, ...]] = ("ild_variable", "ili_variable", "ild_fixed", "ili_fixed")
"""By falling optimisation complexity (section 3.1): in an edge the earlier one is the result's (Table 5)."""

CLASS, REDUCED, READS, WRITE = (f"smartmem.{name}" for name in ("op_class", "reduced_axes", "reads", "write"))


Freedom = Literal["any", "joint", "fixed"]
"""Whether an operand may have any layout, one that the others share, or only the one it has."""


@dataclass(frozen=True)
class Classification:
    """What may be done to an operation's layouts (Tables 3 and 4).

    Args:
        op_class: Its group.
        reduced_axes: For each input the axes that are summed over: what the layout should keep contiguous (3.2.2).
        reads: For each input "any" if it may be read through any permutation by itself, "joint" if only together with
            the other operands, "fixed" if the operation defines how.
        write: "any" if the result may be stored in any order, "fixed" if the operation defines it.
    """

    op_class: OpClass
    reduced_axes: tuple[tuple[int, ...], ...]
    reads: tuple[Freedom, ...]
    write: Literal["any", "fixed"]


def _each(freedom: Freedom, operands: int) -> tuple[Freedom, ...]:
    return (freedom,) * operands


def classify(op: ir.Operation) -> Classification | None:
    """The classification of an operation on tensors, None for one that neither computes on nor moves elements."""
    moved = _movement(op)
    if moved is not None:
        op_class, sources = moved
        return Classification(op_class, ((),) * sources, _each("fixed", sources), "fixed")
    structured = read_structured(op)
    if structured is None:
        return None
    reduced = tuple(_reduced_axes(structured, access) for access in structured.input_accesses)
    if structured.is_elementwise and _one_order(structured):
        return Classification("ili_variable", reduced, _each("joint", len(reduced)), "any")
    return Classification("ild_variable", reduced, _each("any", len(reduced)), "any")


def hardest(classes: Iterable[OpClass]) -> OpClass:
    """The group of operations that stand for one operator, or of a pair that becomes one (Table 5)."""
    return min(classes, key=COMPLEXITY.index)


def _movement(op: ir.Operation) -> tuple[OpClass, int] | None:
    """The group of an operation that only moves elements and how many tensors it reads, None for others."""
    if is_view(op):
        return _view_class(read_view(op)), len(op.operands)
    raised = as_view(op)
    if raised is not None:
        return _view_class(raised[0]), len(raised[1])
    # A gather at run-time positions selects; a movement that is too much for a view reorders.
    if why_not_view(op):
        return "ili_fixed" if op.name == "linalg.generic" else "ild_fixed", len(op.operands) - len(op.results)
    return None


def _view_class(view: View) -> OpClass:
    selects = all(isinstance(piece.source, Fill) or _keeps_axes(piece.exprs) for piece in view.pieces)
    return "ili_fixed" if selects else "ild_fixed"


def _keeps_axes(exprs: Access) -> bool:
    """Whether each axis of the source is an axis of the result, or one position of it, in the same order."""
    order: list[int] = []
    for expr in exprs:
        if expr.is_constant:
            continue
        if len(expr.terms) != 1 or not isinstance(expr.terms[0][0], Dim):
            return False
        order.append(expr.terms[0][0].index)
    return all(a < b for a, b in pairwise(order))


def _reduced_axes(op: StructuredOp, access: Access) -> tuple[int, ...]:
    """Axes whose coordinate varies with a reduction dimension."""
    reductions = {d for d, reduced in enumerate(op.reductions) if reduced}
    return tuple(axis for axis, expr in enumerate(access) if expr.dims & reductions)


def _one_order(op: StructuredOp) -> bool:
    """Whether one order of the dimensions is the order of axes of every operand, however many of them it has."""
    follows: dict[int, set[int]] = {}
    for value, access in zip((*op.inputs, *op.outputs), op.accesses, strict=True):
        if isinstance(value.type, ir.RankedTensorType) and value.type.encoding is not None:
            return False
        order = [expr.single_atom for expr in access if not expr.is_constant]
        dims = [atom.index for atom in order if isinstance(atom, Dim)]
        if len(dims) < len(order) or len(set(dims)) < len(dims):
            return False
        for first, second in pairwise(dims):
            follows.setdefault(first, set()).add(second)
    return _is_acyclic(follows)


def _is_acyclic(follows: dict[int, set[int]]) -> bool:
    remaining = set(follows)
    while remaining:
        last = {d for d in remaining if not follows[d] & remaining}
        if not last:
            return False
        remaining -= last
    return True


def classify_all(root: ir.Operation) -> int:
    """Attaches its classification to each operation on tensors below `root`.

    Returns:
        How many were classified.
    """
    count = 0
    for op in block_operations(root):
        found = classify(op)
        if found is None:
            continue
        op.attributes[CLASS] = ir.Attribute.parse(f"#smartmem.op_class<{found.op_class}>")
        op.attributes[REDUCED] = ir.ArrayAttr.get([ir.DenseI64ArrayAttr.get(list(axes)) for axes in found.reduced_axes])
        op.attributes[READS] = _strings(found.reads)
        op.attributes[WRITE] = ir.StringAttr.get(found.write)
        count += 1
    return count


def _strings(values: Sequence[str]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.StringAttr.get(value) for value in values])


@dataclass(frozen=True)
class Classify(Pass):
    """Attach its operator group to each operation on tensors.

    The four groups of the paper (section 3.1), derived from index maps and iterator types: `smartmem.op_class`. With it
    the axes of each input that are summed over, and which reads and writes may be reordered.
    """

    argument: ClassVar[str] = "smartmem-classify"
    example: ClassVar[str] = "attention_scores.mlir"

    def run(self, op: ir.Operation) -> None:
        """Annotates every function of the module."""
        classify_all(op)
