"""Corrections before torch-mlir: ONNX nodes that it gets wrong or cannot import, as nodes that it gets right.

Each module registers functions for the operators of one family. A rewrite looks at a node through the walk
(:class:`~smartmem_mlir.ingress.onnx_model.specialize.Specializer`), emits its replacement, and returns the
names of the new results; None leaves the node as it is; :class:`Refuse` says that this form of the operator is
not supported.
"""

from __future__ import annotations

from smartmem_mlir.ingress.onnx_model.rewrites.registry import Abandoned, Refuse, apply, apply_untyped

__all__ = ["Abandoned", "Refuse", "apply", "apply_untyped"]
