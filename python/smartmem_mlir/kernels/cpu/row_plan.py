"""How a kernel over rows runs on a CPU: which column dimension fills vectors, and how often a row is gone over."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from smartmem_mlir.index_maps.expr import Expr
from smartmem_mlir.kernels.addresses import SplitAddress, Tiling
from smartmem_mlir.kernels.cpu.blocks import choose_blocks
from smartmem_mlir.kernels.cpu.plan import CpuVectors
from smartmem_mlir.kernels.row_tilings import RowTiling, row_tilings
from smartmem_mlir.transforms.contraction_group import Read
from smartmem_mlir.transforms.row_group import Kind, RowGroup, RowStep

MAX_SCRATCH_BYTES = 48 * 1024
"""Intermediate rows live on the stack, of which IREE's workers have 128 KiB and kernels may use half. Longer ones are
computed again in each pass, if that is cheap."""

WORK_PER_ELEMENT = 8
"""What an element of a row costs, in multiply-adds of a contraction: some 0.2 ns."""

FEWEST_COLUMNS = 8
"""Of the dimension that fills vectors; shorter rows are left to IREE, which may put lanes along rows."""

LONG_ROW = 4096
"""Elements of a row from which on half of that will do: IREE makes three kernels and more of such a row."""


@dataclass(frozen=True)
class RowPlan:
    """A row group with its tiling and every address split.

    Args:
        group: What to compute.
        refined: The group's dimensions over those of the tiling.
        tiling: Rows, the dimension that fills vectors as lanes, and the other columns as reductions.
        reads: Address of everything that is read.
        output: Address of the result.
        phases: Numbers of the full and reducing steps, by the pass over the row in which each is computed; full ones
            may be computed in several.
        stored: Full steps whose row is kept for a later pass.
        lanes: Elements of a vector.
        block_rows: Rows that one workgroup computes.
    """

    group: RowGroup
    refined: tuple[Expr, ...]
    tiling: Tiling
    reads: dict[Read, SplitAddress]
    output: SplitAddress
    phases: tuple[tuple[int, ...], ...]
    stored: frozenset[int]
    lanes: int
    block_rows: int

    @property
    def workgroups(self) -> int:
        """How many there are."""
        return -(-self.tiling.num_rows // self.block_rows)

    @property
    def columns(self) -> int:
        """Elements of a row."""
        return self.tiling.panel_width * prod(self.tiling.reduction_extents)

    def work_of(self, rows: int) -> float:
        """What so many rows cost, in multiply-adds."""
        return float(rows * self.columns * WORK_PER_ELEMENT)


def plan_rows(group: RowGroup, cpu: CpuVectors) -> RowPlan | None:
    """Chooses lanes; None when no column dimension is adjacent in memory wherever it is read."""
    plans = (_fitting(group, found, cpu) for found in row_tilings(group))
    return next((plan for plan in plans if plan is not None), None)


def _fitting(group: RowGroup, found: RowTiling, cpu: CpuVectors) -> RowPlan | None:
    tiling = found.tiling
    phases = _phases(group)
    stored = _stored(group, phases)
    columns = tiling.panel_width * prod(tiling.reduction_extents)
    if tiling.panel_width < FEWEST_COLUMNS // (2 if columns >= LONG_ROW else 1):
        return None
    if len(stored) * columns * 4 > MAX_SCRATCH_BYTES:
        again = _computed_again(group, phases)
        if again is None:
            return None
        phases, stored = again, frozenset()
    rows, _ = choose_blocks((tiling.num_rows, 1), lambda rows, _: rows * columns * WORK_PER_ELEMENT)
    return RowPlan(group, found.refined, tiling, found.reads, found.output, phases, stored, cpu.lanes, rows)


def _phases(group: RowGroup) -> tuple[tuple[int, ...], ...]:
    """Each full or reducing step goes into the first pass in which what it needs is known."""
    passes: list[list[int]] = []
    ready: list[int] = []
    for number, step in enumerate(group.steps):
        needed = [argument for argument in step.arguments if isinstance(argument, int)]
        first = max((ready[argument] for argument in needed), default=0)
        if step.kind is Kind.ROW:
            ready.append(first)
            continue
        while len(passes) <= first:
            passes.append([])
        passes[first].append(number)
        # What a pass reduces is known when it is over.
        ready.append(first + 1 if step.kind is Kind.REDUCE else first)
    return tuple(tuple(numbers) for numbers in passes)


def _computed_again(group: RowGroup, phases: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...] | None:
    """The passes with what they need of earlier ones computed again; None if that is more than arithmetic."""
    found: list[tuple[int, ...]] = []
    for numbers in phases:
        needed = set(numbers)
        pending = list(numbers)
        while pending:
            for argument in group.steps[pending.pop()].arguments:
                if isinstance(argument, int) and group.steps[argument].kind is Kind.FULL and argument not in needed:
                    needed.add(argument)
                    pending.append(argument)
        if not all(_is_cheap(group.steps[number]) for number in needed - set(numbers)):
            return None
        found.append(tuple(sorted(needed)))
    return tuple(found)


def _is_cheap(step: RowStep) -> bool:
    return all(inner.operation.name.startswith(("arith.", "linalg.")) for inner in step.body.operations)


def _stored(group: RowGroup, phases: tuple[tuple[int, ...], ...]) -> frozenset[int]:
    phase_of = {number: index for index, numbers in enumerate(phases) for number in numbers}
    return frozenset(
        argument
        for number, step in enumerate(group.steps)
        if number in phase_of
        for argument in step.arguments
        if isinstance(argument, int)
        and group.steps[argument].kind is Kind.FULL
        and phase_of[argument] < phase_of[number]
    )
