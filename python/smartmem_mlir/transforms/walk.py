"""Iteration over IR."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import mlir.ir as ir


def walk(op: ir.Operation, *, skip: Collection[str] = ()) -> Iterator[ir.Operation]:
    """`op` and everything below it, parents before children.

    The IR must not change while iterating, except that the operation just given may be rewritten once the iterator has
    been advanced past it: collect first, then rewrite.

    Args:
        op: Where to start.
        skip: Names of operations whose bodies are left out.
    """
    yield op
    if op.name in skip:
        return
    for region in op.regions:
        for block in region:
            for child in block.operations:
                yield from walk(child.operation, skip=skip)
