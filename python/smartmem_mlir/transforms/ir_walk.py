"""Walking and cleaning blocks: the few things that MLIR's Python bindings leave to their users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlir import ir

CONSTANTS = ("smartmem.parameter", "arith.constant")
"""What computes a value that is known at compile time, from nothing."""

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


class Positions:
    """Positions of operations in a block.

    They are looked up by their results: an operation's own hash changes with its operands.

    Args:
        operations: In program order.
    """

    def __init__(self, operations: Sequence[ir.Operation]) -> None:
        self._positions: dict[ir.Value, int] = {}
        for position, op in enumerate(operations):
            self.add(op, position)

    def add(self, op: ir.Operation, position: int) -> None:
        """Notes an operation, a new one for instance, at a position."""
        self._positions.update((result, position) for result in op.results)

    def of(self, op: ir.Operation) -> int:
        """The position of an operation; -1 for operations without results and for those of other blocks."""
        return self._positions.get(op.results[0], -1) if len(op.results) else -1


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
