"""Control flow of shaders."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith, scf


def when(conditions: Sequence[ir.Value], then: Callable[[], None]) -> None:
    """Runs a part of the body only where all conditions hold; without conditions, always."""
    if not conditions:
        then()
        return
    condition = conditions[0]
    for other in conditions[1:]:
        condition = arith.andi(condition, other)
    branch = scf.IfOp(condition)
    with ir.InsertionPoint(branch.then_block):
        then()
        scf.YieldOp([])
