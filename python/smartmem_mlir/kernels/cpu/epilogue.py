"""What a kernel computes from a finished sum."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir
from mlir.dialects import arith

from smartmem_mlir.kernels.bodies import evaluate
from smartmem_mlir.kernels.cpu.lanes import splat
from smartmem_mlir.kernels.functions import FUNCTIONS
from smartmem_mlir.transforms.contraction_group import ContractionGroup, Read


def after_sum(group: ContractionGroup, total: ir.Value, read: Callable[[Read], ir.Value]) -> ir.Value:
    """The elements that a contraction group writes, computed at the insertion point.

    Args:
        group: The group.
        total: A vector of sums of products.
        read: The vector of elements that one of the group's reads gives in the place of these sums.
    """
    (lanes,) = total.type.shape
    if isinstance(group.initial, Read):
        total = arith.addf(total, read(group.initial))
    elif group.initial != 0.0:
        total = arith.addf(total, splat(float(group.initial), lanes))
    results = [total]
    for step in group.steps:
        arguments = [results[of] if isinstance(of, int) else read(of) for of in step.arguments]
        results.append(evaluate(step.body, arguments, lanes, FUNCTIONS))
    return results[-1]
