"""The table of rewrites by operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

import onnx

from smartmem_mlir.errors import InvalidModelError, SmartMemError
from smartmem_mlir.ingress.onnx_model.structure import node_label

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer

Rewrite: TypeAlias = "Callable[[Specializer, onnx.NodeProto], Sequence[str] | str | None]"

FAMILIES = (
    "convolution",
    "data_movement",
    "elementwise",
    "linear_algebra",
    "normalization",
    "pooling",
    "quantization",
    "recurrent",
    "resize",
    "sampling",
    "scans",
    "scatter",
    "signal",
)
"""Modules of this package that register rewrites."""

UNTYPED = frozenset({"Compress"})
"""Operators whose rewrites do not look at the types of their results."""

_rewrites: dict[str, Rewrite] = {}


class Refuse(Exception):  # noqa: N818
    """This form of the operator is not supported; the text says why."""


class Abandoned(Exception):  # noqa: N818
    """A node that a rewrite emitted is not supported, which has been noted; the rewrite cannot go on."""


def rewrite(*operators: str) -> Callable[[Rewrite], Rewrite]:
    """Register a function as the rewrite of operators of the default domain."""

    def register(function: Rewrite) -> Rewrite:
        for operator in operators:
            assert operator not in _rewrites, f"two rewrites of {operator}"
            _rewrites[operator] = function
        return function

    return register


def apply_untyped(graph: Specializer, node: onnx.NodeProto) -> Sequence[str] | None:
    """Rewrite a node whose results' shapes inference cannot tell, if its rewrite can."""
    return apply(graph, node) if node.op_type in UNTYPED else None


def apply(graph: Specializer, node: onnx.NodeProto) -> Sequence[str] | None:
    """Rewrite a node.

    Returns:
        The names of its results, or None if the node is right as it is.
    """
    if not _rewrites:
        for family in FAMILIES:
            import_module(f"smartmem_mlir.ingress.onnx_model.rewrites.{family}")
    function = _rewrites.get(node.op_type)
    if function is None:
        return None
    try:
        results = function(graph, node)
    except (Abandoned, Refuse, SmartMemError):
        raise
    except Exception as error:
        # Rewrites rely on what a valid node has; not all of that is checked by ONNX's schemas and inference.
        raise InvalidModelError(
            f"its operands or attributes do not fit the operator ({type(error).__name__}: {error})",
            file=graph.file,
            node=node_label(node),
        ) from error
    return [results] if isinstance(results, str) else results
