"""Walking and cleaning blocks: the few things that MLIR's Python bindings leave to their users."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

_REMOVABLE_DIALECTS = ("arith.", "tensor.", "linalg.", "smartmem.view", "smartmem.parameter", "math.")


def block_operations(root: ir.Operation) -> list[ir.Operation]:
    """The operations of every function body below `root`, in order; operations inside linalg bodies are not entered.

    The list is made before it is used, so that the caller may replace and erase what it holds.
    """
    if root.name == "func.func":
        return [op.operation for region in root.regions for block in region.blocks for op in block.operations]
    found: list[ir.Operation] = []
    for region in root.regions:
        for block in region.blocks:
            for op in block.operations:
                found.extend(block_operations(op.operation))
    return found


def users(value: ir.Value) -> Iterator[ir.Operation]:
    """The operations that use `value`, once per use."""
    for use in value.uses:
        yield use.owner.operation


def has_one_use(value: ir.Value) -> bool:
    """Whether exactly one operand is `value`."""
    return len(list(value.uses)) == 1


def is_unused(op: ir.Operation) -> bool:
    """Whether no result is used."""
    return all(next(iter(result.uses), None) is None for result in op.results)


def erase_dead(root: ir.Operation) -> int:
    """Erases operations without effects whose results are unused, in one backward sweep.

    Returns:
        How many were erased.
    """
    erased = 0
    for op in reversed(block_operations(root)):
        if op.name.startswith(_REMOVABLE_DIALECTS) and len(op.results) and is_unused(op):
            op.erase()
            erased += 1
    return erased
