"""How a kernel over rows runs on a CPU: what fills vectors, and how often a row is gone over.

A column dimension does where its elements are adjacent in memory. Where only few are, as in a norm over pixels
whose channels are adjacent, several rows together fill vectors: each cache line is read once and not once a row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd, prod

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import ZERO, Dim, Expr, dim
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.kernels.addresses import SplitAddress, Tiling
from smartmem_mlir.kernels.cpu.blocks import WORKERS, choose_blocks
from smartmem_mlir.kernels.cpu.lanes import LINE_ELEMENTS
from smartmem_mlir.kernels.cpu.plan import CpuVectors
from smartmem_mlir.kernels.row_tilings import RowTiling, element_tiling, row_tilings
from smartmem_mlir.transforms.contraction_group import Read
from smartmem_mlir.transforms.row_group import Kind, RowGroup, RowStep

MAX_SCRATCH_BYTES = 48 * 1024
"""Intermediate rows live on the stack, of which IREE's workers have 128 KiB and kernels may use half. Longer ones are
computed again in each pass, if that is cheap."""

WORK_PER_ELEMENT = 8
"""What an element of a row costs, in multiply-adds of a contraction: some 0.2 ns."""

FEWEST_COLUMNS = 8
"""Of the dimension that fills vectors; shorter rows are left to IREE, which may put lanes along rows."""

FEWEST_STEPS_OF_PACK = 64
"""Steps of a pass over rows that share vectors: what is reduced is then taken apart, row by row."""

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
        pack: Rows that share vectors; 1 where the columns of a row fill them.
        steady: What all rows of a pack read alike.
        row_numbers: What is read once for all columns of a row of a pack.
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
    pack: int = 1
    steady: frozenset[Read] = frozenset()
    row_numbers: frozenset[Read] = frozenset()

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
    """Chooses lanes; None when neither columns nor rows are adjacent in memory wherever they are read."""
    for found in row_tilings(group):
        plan = _packed(group, found, cpu) or _fitting(group, found, cpu)
        if plan is not None:
            return plan
    elements = element_tiling(group)
    return None if elements is None else _packed(group, elements, cpu)


def _packed(group: RowGroup, found: RowTiling, cpu: CpuVectors) -> RowPlan | None:
    """A plan in which rows share vectors; None where they need not or cannot."""
    tiling = found.tiling
    width = tiling.panel_width
    pack = LINE_ELEMENTS // gcd(LINE_ELEMENTS, width)
    # Two adjacent lines at a time come sooner, as long as there are packs for all workers.
    if tiling.num_rows % (2 * pack * max(WORKERS)) == 0:
        pack *= 2
    if width >= LINE_ELEMENTS or tiling.num_rows % pack or prod(tiling.reduction_extents) < FEWEST_STEPS_OF_PACK:
        return None
    if not any(step.kind is Kind.REDUCE for step in group.steps):
        return None
    phases = _computed_again(group, _phases(group))
    if phases is None:
        return None
    steady, row_numbers = set(), set()
    used = {a for step in group.steps if step.kind is not Kind.ROW for a in step.arguments if isinstance(a, Read)}
    for read, address in found.reads.items():
        step = _pack_step(address, tiling, pack)
        if read in used and step == 0 and (address.lanes == 0 or width == 1):
            steady.add(read)
        elif read in used and address.lanes == 0 and address.inner == ZERO:
            row_numbers.add(read)
        elif read in used and (step != width or (address.lanes == 0 and width > 1)):
            return None
    if group.steps[-1].kind is Kind.FULL and _pack_step(found.output, tiling, pack) != width:
        return None
    columns = width * prod(tiling.reduction_extents)
    packs, _ = choose_blocks((tiling.num_rows // pack, 1), lambda packs, _: packs * pack * columns * WORK_PER_ELEMENT)
    plan = RowPlan(
        group, found.refined, tiling, found.reads, found.output, phases, frozenset(), cpu.lanes, packs * pack
    )
    return replace(plan, pack=pack, steady=frozenset(steady), row_numbers=frozenset(row_numbers))


def _pack_step(address: SplitAddress, tiling: Tiling, pack: int) -> int | None:
    """Distance in memory between successive rows of each pack; None where it is not the same between all."""
    box = Box.of((tiling.num_rows // pack, pack))
    (packed,) = simplify_exprs([address.outer.substitute([dim(0) * pack + dim(1)])], box)
    step = packed.coefficient(Dim(1))
    return step if 1 not in (packed - dim(1) * step).dims else None


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
