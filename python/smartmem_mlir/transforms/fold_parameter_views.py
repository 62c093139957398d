"""fold-parameter-views: a view of a weight becomes a weight that is stored that way.

Packing a weight for the kernel that reads it is a view like any other, so it is proved like any other; but nothing has
to compute it at run time. The new parameter names the view it is of, and whoever writes the parameter archive evaluates
it, one weight at a time.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from mlir import ir

from smartmem_mlir.dialects import smartmem
from smartmem_mlir.index_maps.text import print_view
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.transforms.convert_to_iree import PARAMETER_OP
from smartmem_mlir.transforms.ir_walk import block_operations, erase_dead
from smartmem_mlir.transforms.pass_base import Pass
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view

VIEW_ATTRIBUTE = "smartmem.view"
"""On a parameter: the view of its source that its values are, as `index_maps.text` writes it."""
SOURCE_ATTRIBUTE = "smartmem.view_of"
"""On a parameter: key of the parameter that it is a view of."""

MAX_GROWTH = 2
"""A view with more than this many times the elements of its source is left to the program: a broadcast is no layout."""


def fold_parameter_views(root: ir.Operation) -> int:
    """Replaces views of parameters by parameters.

    Returns:
        How many were replaced.
    """
    folded = 0
    for op in block_operations(root):
        if not is_view(op) or len(op.operands) != 1:
            continue
        source = defining_op(op.operands[0])
        if source is None or source.name != PARAMETER_OP or VIEW_ATTRIBUTE in source.attributes:
            continue
        view = read_view(op)
        if view.box.volume > MAX_GROWTH * prod(view.operands[0]):
            continue
        with ir.InsertionPoint(op), op.location:
            made = _derived(source, view, op.results[0].type)
        op.results[0].replace_all_uses_with(made)
        op.erase()
        folded += 1
    erase_dead(root)
    return folded


def _derived(source: ir.Operation, view: View, type_: ir.Type) -> ir.Value:
    key, text = ir.StringAttr(source.attributes["key"]).value, print_view(view)
    made = smartmem.ParameterOp(type_, f"{key}#{hashlib.sha256(text.encode()).hexdigest()[:12]}")
    made.operation.attributes[VIEW_ATTRIBUTE] = ir.StringAttr.get(text)
    made.operation.attributes[SOURCE_ATTRIBUTE] = ir.StringAttr.get(key)
    return made.result


def read_parameters(root: ir.Operation) -> dict[str, dict[str, Any] | None]:
    """The parameters that a module reads.

    Returns:
        By key: None, or for a parameter that is a view of another, that other's key as `source` and the view as `view`.
    """
    found: dict[str, dict[str, Any] | None] = {}
    for op in block_operations(root):
        if op.name != PARAMETER_OP:
            continue
        derived: dict[str, Any] | None = None
        if VIEW_ATTRIBUTE in op.attributes:
            names = {"source": SOURCE_ATTRIBUTE, "view": VIEW_ATTRIBUTE}
            derived = {field: ir.StringAttr(op.attributes[name]).value for field, name in names.items()}
        found[ir.StringAttr(op.attributes["key"]).value] = derived
    return found


@dataclass(frozen=True)
class FoldParameterViews(Pass):
    """Store weights the way they are read.

    A view of a parameter becomes a parameter of its own, which carries the view and the key of its source; the archive
    holds what the view says. Sources that nothing else reads are not stored.
    """

    argument: ClassVar[str] = "smartmem-fold-parameter-views"
    example: ClassVar[str] = "packed_weight.mlir"

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        fold_parameter_views(op)
