"""Control flow of shaders."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith, scf

from smartmem_mlir.kernels.spirv import integers


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


def loop(
    trips: int, body: Callable[[ir.Value, Sequence[ir.Value]], Sequence[ir.Value]], carried: Sequence[ir.Value]
) -> list[ir.Value]:
    """Runs a body so many times; one trip is written out.

    Args:
        trips: At least one.
        body: Of a trip's number and what is carried; gives what is carried on.
        carried: What the first trip gets.
    """
    if trips == 1:
        return list(body(integers.constant(0), carried))
    start, stop, step = map(integers.constant, (0, trips, 1))
    made = scf.ForOp(start, stop, step, list(carried))
    with ir.InsertionPoint(made.body):
        scf.YieldOp(list(body(made.induction_variable, list(made.inner_iter_args))))
    return list(made.results)
