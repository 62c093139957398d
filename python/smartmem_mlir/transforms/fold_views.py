"""fold-views: contractions read and write through views; elementwise operations and reductions absorb permutations.

What folds where follows the paper's edge table (section 3.2): next to an operation whose performance depends on the
layout, the data movement goes and the operation stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from smartmem_mlir.index_maps.map import IndexMap
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.transforms.access_folding import (
    fold_accesses,
    fold_into_output,
    is_reshape,
    is_structured_read,
    rebuild,
)
from smartmem_mlir.transforms.claims import tell
from smartmem_mlir.transforms.compose_views import compose_views
from smartmem_mlir.transforms.gather_sources import read_gathers_through_views
from smartmem_mlir.transforms.ir_walk import block_operations, erase_dead, has_one_use
from smartmem_mlir.transforms.pass_base import Pass, option
from smartmem_mlir.transforms.structured import (
    StructuredOp,
    is_projection,
    is_structured,
    read_structured,
)
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view


def fold_views(root: ir.Operation, expand: bool = False) -> int:
    """Folds views into the structured operations around them.

    Args:
        root: What to look through.
        expand: Whether elementwise operations and reductions read through reshapes too, over a finer iteration space.

    Returns:
        How many operations were rewritten.
    """
    folded = 0
    for op in block_operations(root):
        if is_view(op) and _fold_into_producer(op):
            folded += 1
    # A producer over a refined space reads its own operands expanded: one view with what they were read through.
    compose_views(root)
    for op in block_operations(root):
        if is_structured(op) and _fold_into_consumer(op, expand):
            folded += 1
    folded += read_gathers_through_views(root)
    erase_dead(root)
    return folded


def _fold_into_producer(op: ir.Operation) -> bool:
    """A contraction whose only reader is a view writes in the view's order.

    Where one side must be strided it is the write: sub-optimal writes cost less than sub-optimal reads (paper 3.2.2).
    """
    if len(op.operands) != 1 or not has_one_use(op.operands[0]):
        return False
    producer = defining_op(op.operands[0])
    structured = None if producer is None else read_structured(producer)
    if structured is None or not structured.is_contraction:
        return False
    view = read_view(op)
    if is_reshape(view):
        return False
    planned = fold_into_output(structured, view)
    if planned is None:
        return False
    results = rebuild(structured, planned[0], op)
    if results is None:
        return False
    tell(op, "written", [structured.op])
    op.results[0].replace_all_uses_with(results[0])
    op.erase()
    structured.op.erase()
    return True


def _fold_into_consumer(op: ir.Operation, expand: bool) -> bool:
    structured = read_structured(op)
    if structured is None:
        return False
    required: dict[int, tuple[IndexMap, ir.Value]] = {}
    optional: dict[int, tuple[IndexMap, ir.Value]] = {}
    for number, value in enumerate(structured.inputs):
        inner = defining_op(value)
        if inner is None or not is_view(inner):
            continue
        view = read_view(inner)
        single = view.single_map
        if single is None:
            continue
        through = (single, inner.operands[0])
        if expand and _is_collapse(view) and not structured.is_contraction:
            required[number] = through
        elif is_reshape(view) or is_structured_read(view):
            optional[number] = through
        elif structured.is_contraction or _stays_projection(structured, number, single):
            required[number] = through
    # All at once if possible; otherwise as many as agree on one refinement, first come first served.
    while required:
        plan = fold_accesses(structured, required, optional)
        if plan is not None:
            results = rebuild(structured, plan)
            if results is None:
                return False
            for value, source in zip(structured.inputs, plan.sources, strict=True):
                if value != source:
                    tell(value.owner, "read", [op])
            for old, new in zip(op.results, results, strict=True):
                old.replace_all_uses_with(new)
            op.erase()
            return True
        required.popitem()
    return False


def _is_collapse(view: View) -> bool:
    """Whether the view merges dimensions of its source."""
    return is_reshape(view) and sum(size > 1 for size in view.shape) < sum(size > 1 for size in view.operands[0])


def _stays_projection(op: StructuredOp, number: int, index_map: IndexMap) -> bool:
    """Whether the input is still read by a permutation of dimensions once the view is folded in."""
    access = tuple(expr.substitute(op.input_accesses[number]) for expr in index_map.exprs)
    return is_projection(access)


@dataclass(frozen=True)
class FoldViews(Pass):
    """Fold views into the index maps of the operations around them.

    Contractions read through views over a refined iteration space, so that keys are never transposed in memory and
    heads never split or merged; a contraction read by one view writes its order. Elementwise operations and reductions
    absorb permutations and broadcasts.
    """

    argument: ClassVar[str] = "smartmem-fold-views"
    example: ClassVar[str] = "transposed_keys.mlir"

    expand: bool = option(False, "let elementwise operations and reductions read through merged dimensions")

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        fold_views(op, self.expand)
