"""Rewrite patterns in Python, driven by MLIR's greedy driver, with a bound and with errors that arrive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mlir.ir as ir
from mlir.rewrite import GreedyRewriteConfig, PatternRewriter, RewritePatternSet, apply_patterns_and_fold_greedily

from smartmem_mlir.transforms.pass_base import PassError

MAX_ITERATIONS = 10
"""Sweeps over the IR before the driver gives up; MLIR's own default."""


@dataclass(frozen=True)
class Pattern:
    """One rewrite.

    Args:
        root: Name of the operation it matches (`smartmem.convert_layout`), or its OpView class.
        rewrite: Called with the operation and the rewriter; returns whether it changed the IR. New operations are built
            at the rewriter's insertion point, which is active, and old ones replaced through the rewriter.
        benefit: Of two patterns that match, the one with the higher benefit is tried first.
    """

    root: str | type[Any]
    rewrite: Callable[[Any, PatternRewriter], bool]
    benefit: int = 1


class _Driver:
    """Adapts patterns to MLIR's convention and carries exceptions around its C++ frames, which cannot unwind."""

    def __init__(self, max_rewrites: int) -> None:
        self.max_rewrites = max_rewrites
        self.rewrites = 0
        self.failure: BaseException | None = None

    def adapt(self, pattern: Pattern) -> Callable[[Any, PatternRewriter], bool | None]:
        def match_and_rewrite(op: Any, rewriter: PatternRewriter) -> bool | None:
            if self.failure is not None:
                return True  # MLIR's convention: a true value is "no match"
            try:
                if self.rewrites >= self.max_rewrites:
                    raise PassError(f"patterns still apply after {self.rewrites} rewrites", op=op)
                with rewriter.ip, op.location:
                    changed = pattern.rewrite(op, rewriter)
            except BaseException as error:
                self.failure = error
                return True
            self.rewrites += changed
            return None if changed else True

        return match_and_rewrite


def count_operations(op: ir.Operation) -> int:
    """Number of operations below `op`, itself included."""
    return 1 + sum(
        count_operations(child.operation) for region in op.regions for block in region for child in block.operations
    )


def apply_patterns(
    op: ir.Operation,
    patterns: Sequence[Pattern],
    *,
    max_iterations: int = MAX_ITERATIONS,
    max_rewrites: int | None = None,
    fold: bool = True,
) -> int:
    """Applies patterns until none matches.

    Args:
        op: Everything below it is rewritten.
        patterns: The rewrites.
        max_iterations: Sweeps over the IR after which an unfinished rewrite is an error.
        max_rewrites: Rewrites after which it is one; by default 16 for each operation, and at least 1024.
        fold: Whether operations are also folded and dead ones erased.

    Returns:
        The number of rewrites.

    Raises:
        PassError: The patterns reach no fixed point within the bounds.
    """
    driver = _Driver(max(1024, 16 * count_operations(op)) if max_rewrites is None else max_rewrites)
    pattern_set = RewritePatternSet(op.context)
    for pattern in patterns:
        pattern_set.add(pattern.root, driver.adapt(pattern), pattern.benefit)
    config = GreedyRewriteConfig()
    config.max_iterations = max_iterations
    config.enable_folding = fold
    converged = True
    try:
        apply_patterns_and_fold_greedily(op, pattern_set.freeze(), config)
    except RuntimeError:
        converged = False
    if driver.failure is not None:
        raise driver.failure
    if not converged:
        raise PassError(f"patterns reach no fixed point in {max_iterations} iterations", op=op)
    return driver.rewrites
