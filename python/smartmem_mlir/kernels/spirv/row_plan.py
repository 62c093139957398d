"""How a kernel over rows runs on a GPU: which threads share a row, and what each of them holds.

The threads of a row take its vectors in turn, so that neighbours load neighbours, reduce what they hold and then add it
up in workgroup memory. A row that is short enough is loaded once and stays in registers; of a longer one each pass
loads and computes again what it needs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from mlir import ir

from smartmem_mlir.index_maps.expr import Expr
from smartmem_mlir.kernels.addresses import SplitAddress, Tiling
from smartmem_mlir.kernels.row_tilings import RowTiling, row_tilings
from smartmem_mlir.kernels.spirv.bodies import can_evaluate
from smartmem_mlir.kernels.spirv.limits import GpuLimits
from smartmem_mlir.kernels.spirv.vectors import WIDTH
from smartmem_mlir.transforms.contraction_group import Read
from smartmem_mlir.transforms.row_group import Kind, RowGroup, combination
from smartmem_mlir.transforms.structured import Access

_INVOCATIONS = 128
"""Threads of a workgroup where rows are many: waiting for each other is what they do most then."""
_VECTORS_PER_THREAD = 2
_MOST_HELD = 12
"""Vectors of a row that a thread may hold."""
_UNROLLED = 4
"""Vectors of a longer row that a thread loads before it waits for the first."""


@dataclass(frozen=True)
class RowShaderPlan:
    """A row group with its tiling and every address split.

    Args:
        group: What to compute.
        tiling: Rows, the dimension that fills vectors as lanes, and the other columns as reductions.
        reads: Address of everything that is read.
        output: Address of the result.
        phases: Numbers of the reducing steps, by the pass over the row in which each is computed.
        refined: Each dimension of the group over the tiling's iteration space.
        threads: Threads that share a row.
        rows: Rows of a workgroup.
    """

    group: RowGroup
    tiling: Tiling
    reads: dict[Read, SplitAddress]
    output: SplitAddress
    phases: tuple[tuple[int, ...], ...]
    refined: tuple[Expr, ...]
    threads: int
    rows: int

    def access(self, read: Read) -> Access:
        """Coordinates of what is read or written over the tiling's iteration space."""
        return tuple(expr.substitute(self.refined) for expr in read.access)

    @property
    def invocations(self) -> int:
        """Threads of a workgroup."""
        return self.threads * self.rows

    @property
    def shared_vectors(self) -> int:
        """Vectors of workgroup memory: two for each thread, which are written in turn."""
        return 2 * self.invocations if self.threads > 1 else 0

    @property
    def workgroups(self) -> tuple[int, int]:
        """Workgroups along x and y."""
        return -(-self.tiling.num_rows // self.rows), 1

    @property
    def vectors_per_range(self) -> int:
        """Vectors of the dimension that fills them; the last may be narrower."""
        return -(-self.tiling.panel_width // WIDTH)

    @property
    def vectors(self) -> int:
        """Vectors of a row."""
        return self.vectors_per_range * prod(self.tiling.reduction_extents)

    @property
    def trips(self) -> int:
        """Vectors of each thread; the last of some are none of the row's."""
        return -(-self.vectors // self.threads)

    @property
    def unroll(self) -> int:
        """Trips of a loop over a row that are written out."""
        return next(n for n in range(_UNROLLED, 0, -1) if self.trips % n == 0)

    @property
    def is_held(self) -> bool:
        """Whether a thread holds all of its vectors."""
        return self.trips <= _MOST_HELD


def plan_rows(group: RowGroup, limits: GpuLimits) -> RowShaderPlan | None:
    """Chooses lanes and threads; None when no column dimension is adjacent in memory wherever it is read."""
    if not all(can_evaluate(step.body) for step in group.steps if step.kind is not Kind.REDUCE):
        return None
    plans = (_fitting(group, found, limits) for found in row_tilings(group))
    return next((plan for plan in plans if plan is not None), None)


def _fitting(group: RowGroup, found: RowTiling, limits: GpuLimits) -> RowShaderPlan | None:
    tiling = found.tiling
    plan = RowShaderPlan(group, tiling, found.reads, found.output, reduction_phases(group), found.refined, 1, 1)
    fitting = min(limits.invocations, limits.shared_bytes // (2 * WIDTH * 4))
    most = min(fitting, _INVOCATIONS)
    # Of a few long rows each gets all the threads that a core can have: more cores it cannot.
    while most * 2 <= fitting and tiling.num_rows <= limits.cores and plan.vectors > most * _MOST_HELD:
        most *= 2
    threads = 1
    while threads * 2 <= most and threads * _VECTORS_PER_THREAD < plan.vectors:
        threads *= 2
    rows = 1
    while rows * 2 * threads <= most and rows < tiling.num_rows:
        rows *= 2
    shaped = replace(plan, threads=threads, rows=rows)
    return shaped if shaped.workgroups[0] <= limits.workgroups[0] else None


def reduction_phases(group: RowGroup) -> tuple[tuple[int, ...], ...]:
    """Each reducing step goes into the first pass over the row before which what it needs is known."""
    passes: list[list[int]] = []
    ready: list[int] = []
    for number, step in enumerate(group.steps):
        first = max((ready[argument] for argument in step.arguments if isinstance(argument, int)), default=0)
        if step.kind is not Kind.REDUCE:
            ready.append(first)
            continue
        while len(passes) <= first:
            passes.append([])
        passes[first].append(number)
        ready.append(first + 1)
    return tuple(map(tuple, passes))


def combination_of(group: RowGroup, number: int) -> tuple[str, ir.Value]:
    """How a reducing step combines: the operation's name, and what it combines the total with."""
    step = group.steps[number]
    found = combination(step.body, step.accumulator, step.accumulator - len(step.arguments))
    assert found is not None, "the group has checked it"
    return found
