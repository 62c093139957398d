"""Contexts with the smartmem dialect."""

from __future__ import annotations

from mlir.ir import Context

import smartmem_mlir.dialects  # noqa: F401 (registers the dialect)


def make_context(*, allow_unregistered_dialects: bool = False) -> Context:
    """A context with every MLIR dialect and smartmem.

    Single-threaded, because passes in Python hold the interpreter lock.

    Args:
        allow_unregistered_dialects: Accept operations of dialects that MLIR does not know (IREE's, in generic form).
    """
    context = Context()
    context.enable_multithreading(False)
    context.allow_unregistered_dialects = allow_unregistered_dialects
    return context
