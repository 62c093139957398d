"""How a contraction runs on a GPU: what a thread computes, what a workgroup shares, and how each factor is loaded.

A thread accumulates a few rows by one vector of four lanes in registers. Loads, not multiply-adds, limit such a kernel:
a factor is loaded by vectors wherever four of its elements are adjacent, along the lanes or along the sum. Where the
result alone has too few elements to fill the device, the threads of a workgroup divide the sum among them and add
their parts in workgroup memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import product
from math import prod

from mlir import ir

from smartmem_mlir.index_maps.expr import Dim, Expr, dim
from smartmem_mlir.kernels.addresses import FIRST_REDUCTION, PANEL, ROW, SplitAddress, Tiling, split_address
from smartmem_mlir.kernels.groups import reads_after_sum
from smartmem_mlir.kernels.spirv.limits import CORE_LANES, GpuLimits
from smartmem_mlir.kernels.spirv.vectors import WIDTH
from smartmem_mlir.transforms.contraction_group import ContractionGroup, Read, whole
from smartmem_mlir.transforms.view_ops import shape_of

_MOST_ROWS = 8
_INVOCATIONS = (256, 128)
"""Sizes of workgroups. Larger ones wait for each other and gain nothing; smaller ones spread more evenly over cores."""
_WARP = 32
LOAD_LATENCY = 400
"""Cycles from a load to its use: what a thread waits for where no other hides it."""
LOAD_ISSUE = 4
"""Cycles that a load of a vector keeps a thread's lane busy, in multiply-adds."""
_OTHER_REGISTERS = 32
"""Registers of a thread beside sums and factors: addresses, above all."""


class Direction(Enum):
    """What four elements that one load brings are."""

    LANES = auto()
    """Neighbours along the vector of lanes."""
    TERMS = auto()
    """Neighbours along the innermost sum."""
    NONE = auto()
    """One element at a time."""


@dataclass(frozen=True)
class Operand:
    """How a kernel reads one tensor.

    Args:
        read: The tensor and which element of it.
        address: Of that element, over the tiling.
        direction: What a load brings.
    """

    read: Read
    address: SplitAddress
    direction: Direction

    @property
    def value(self) -> ir.Value:
        """The tensor."""
        return self.read.value

    @property
    def is_aligned(self) -> bool:
        """Whether every load is of a whole vector of the tensor."""
        return self.direction is not Direction.NONE


@dataclass(frozen=True)
class ShaderPlan:
    """A contraction group with its tiling and how each tensor is read.

    Args:
        group: What to compute.
        tiling: The walk over the iteration space, in panels of one vector of lanes.
        lhs: Parts of the left factor.
        rhs: The right factor.
        scale: What the right factor is multiplied by, if anything.
        packed: Whether the right factor is a weight, stored as :func:`packed_address` says.
        step: Terms of the innermost sum that one trip adds: 4, or 1.
        rows: Rows that a thread computes.
        columns: Threads of a workgroup side by side along panels.
        groups: Threads along rows.
        splits: Threads that divide the sum.
        split_level: Which of the reductions they divide.
        unroll: Trips of the innermost loop over the sum that are written out, so that their loads overlap.
    """

    group: ContractionGroup
    tiling: Tiling
    lhs: tuple[Operand, ...]
    rhs: Operand
    scale: SplitAddress | None
    packed: bool
    step: int
    rows: int = 1
    columns: int = 1
    groups: int = 1
    splits: int = 1
    split_level: int = 0
    unroll: int = 1

    @property
    def invocations(self) -> int:
        """Threads of a workgroup."""
        return self.columns * self.groups * self.splits

    @property
    def workgroups(self) -> tuple[int, int]:
        """Workgroups along panels and along rows."""
        return -(-self.tiling.num_panels // self.columns), -(-self.tiling.num_rows // (self.rows * self.groups))

    @property
    def shared_vectors(self) -> int:
        """Vectors of workgroup memory."""
        return self.invocations * self.rows if self.splits > 1 else 0

    @property
    def trips(self) -> tuple[int, ...]:
        """Trip counts of the loops over the sum, without division among threads."""
        extents = self.tiling.reduction_extents
        return (*extents[:-1], extents[-1] // self.step) if extents else ()


def contraction_plans(group: ContractionGroup, constant_rhs: bool) -> Iterator[ShaderPlan]:
    """Every choice of factors, lanes and loads, for one thread.

    Args:
        group: What to compute.
        constant_rhs: Whether the right factor is known at compile time, so that it can be stored in any order.
    """
    yield from _load_plans(group, constant_rhs)
    if group.lhs.view is None:
        yield from _load_plans(replace(group, lhs=whole(group.rhs), rhs=group.lhs.reads[0]), False)


def tiled_plans(plan: ShaderPlan, limits: GpuLimits) -> Iterator[tuple[float, ShaderPlan]]:
    """A plan with every tile and workgroup that fits, each with its modelled time in cycles."""
    accesses = accesses_after_sum(plan)
    for placed in _shapes(plan, limits):
        after = placed.rows * accesses * LOAD_ISSUE * _waves(placed, limits)
        yield _cycles(placed, limits) + after, placed


def _shapes(plan: ShaderPlan, limits: GpuLimits) -> Iterator[ShaderPlan]:
    """A plan with every choice of rows, threads that share a sum and workgroup that fits."""
    rows = range(1, min(_MOST_ROWS, plan.tiling.num_rows) + 1)
    for number, splits, most in product(rows, (1, 2, 4, 8, 16, 32), _invocations(limits)):
        placed = _shape(replace(plan, rows=number, splits=splits), limits, most)
        if placed is not None:
            yield placed


def _invocations(limits: GpuLimits) -> list[int]:
    """Most threads of a workgroup that are worth a try, in order of preference."""
    return list(dict.fromkeys(min(limits.invocations, size) for size in _INVOCATIONS))


def _load_plans(group: ContractionGroup, packed: bool) -> Iterator[ShaderPlan]:
    """A plan for each dimension that can be the lane."""
    root = group.root
    parallel = [d for d, reduced in enumerate(root.reductions) if not reduced]
    in_rhs = frozenset().union(*(expr.dims for expr in group.rhs.access), ())
    if packed and group.rhs.value in {read.value for read in (*group.lhs.reads, *reads_after_sum(group))}:
        return
    for lane in (d for d in parallel if d in in_rhs):
        tiling = Tiling(
            extents=root.extents,
            rows=tuple(d for d in parallel if d not in in_rhs),
            panels=tuple(d for d in parallel if d in in_rhs and d != lane),
            lane=lane,
            reductions=_reduction_order(group),
            panel_width=WIDTH,
        )
        plan = _load_plan(group, tiling, packed)
        if plan is not None:
            yield plan


def _reduction_order(group: ContractionGroup) -> tuple[int, ...]:
    """Reductions with the one whose steps are shortest in the left factor innermost."""
    terms = dict(group.lhs.reads[0].address.terms)
    reduced = [d for d, is_reduced in enumerate(group.root.reductions) if is_reduced]
    return tuple(sorted(reduced, key=lambda d: (-abs(terms.get(Dim(d), 1 << 40)), d)))


def _load_plan(group: ContractionGroup, tiling: Tiling, packed: bool) -> ShaderPlan | None:
    lhs = [split_address(read.address, tiling) for read in group.lhs.reads]
    rhs = packed_address(tiling) if packed else split_address(group.rhs.address, tiling)
    parts = [address for address in lhs if address is not None]
    if rhs is None or ROW in rhs.outer.dims or len(parts) < len(lhs):
        return None
    if split_address(group.output.address, tiling) is None:
        return None
    if any(split_address(read.address, tiling) is None for read in reads_after_sum(group)):
        return None
    scale = None if group.scale is None else split_address(group.scale.read.address, tiling)
    if group.scale is not None and (scale is None or scale.lanes or scale.outer.dims):
        return None
    left = tuple(
        Operand(read, address, direction_of(read.value, address, tiling))
        for read, address in zip(group.lhs.reads, parts, strict=True)
    )
    right = Operand(group.rhs, rhs, Direction.LANES if packed else direction_of(group.rhs.value, rhs, tiling))
    return ShaderPlan(group, tiling, left, right, scale, packed, _step(group, tiling, left, right))


def _step(group: ContractionGroup, tiling: Tiling, lhs: tuple[Operand, ...], rhs: Operand) -> int:
    bounds = [*group.lhs.starts, tiling.reduction_extents[-1]] if tiling.reductions else [1]
    cut = tiling.reductions and group.lhs.dimension == tiling.reductions[-1]
    whole_steps = all(bound % WIDTH == 0 for bound in (bounds if cut else bounds[-1:]))
    directions = {operand.direction for operand in (*lhs, rhs)}
    return WIDTH if whole_steps and Direction.TERMS in directions else 1


def direction_of(value: ir.Value, address: SplitAddress, tiling: Tiling) -> Direction:
    """What four adjacent elements of a tensor are, where vectors of it are aligned."""
    return Direction.NONE if prod(shape_of(value)) % WIDTH else direction_of_address(address, tiling)


def direction_of_address(address: SplitAddress, tiling: Tiling) -> Direction:
    """What four elements at successive numbers are, where vectors of them begin at multiples of four."""
    if address.lanes == 1:
        whole_panels = tiling.extents[tiling.lane] % WIDTH == 0
        aligned = is_multiple(address.outer) and is_multiple(address.inner)
        return Direction.LANES if aligned and whole_panels else Direction.NONE
    if not tiling.reductions or tiling.reduction_extents[-1] % WIDTH or address.lanes % WIDTH:
        return Direction.NONE
    innermost = FIRST_REDUCTION + len(tiling.reductions) - 1
    rest = address.inner - dim(innermost)
    adjacent = innermost not in rest.dims
    return Direction.TERMS if adjacent and is_multiple(address.outer) and is_multiple(rest) else Direction.NONE


def is_multiple(expr: Expr) -> bool:
    """Whether an address is visibly a multiple of the width of a vector."""
    return expr.const % WIDTH == 0 and all(coefficient % WIDTH == 0 for _, coefficient in expr.terms)


def packed_address(tiling: Tiling) -> SplitAddress:
    """Address in a packed weight: [outer panels, reductions, lanes], lanes filled up with zeros to whole vectors."""
    count = tiling.panels_per_lane_range
    outer = dim(PANEL) // count if tiling.num_panels > count else Expr(0)
    step = count * WIDTH
    inner = Expr(0)
    for i in reversed(range(len(tiling.reductions))):
        inner = inner + dim(FIRST_REDUCTION + i) * step
        step *= tiling.reduction_extents[i]
    return SplitAddress(outer * step + packed_row(tiling), inner, 1)


def packed_row(tiling: Tiling) -> Expr:
    """Where a panel's lanes begin in the row of lanes of a packed weight."""
    count = tiling.panels_per_lane_range
    return (dim(PANEL) % count if tiling.num_panels > count else dim(PANEL)) * WIDTH


def _shape(plan: ShaderPlan, limits: GpuLimits, most: int) -> ShaderPlan | None:
    """The workgroup, of so many threads, of a plan whose rows and splits are chosen; None when it does not fit."""
    level = max(range(len(plan.trips)), key=lambda i: (plan.trips[i], i), default=0)
    divided = plan.tiling.reductions[level] if plan.trips else None
    if plan.splits > 1 and (not plan.trips or plan.trips[level] < plan.splits):
        return None
    if plan.splits > 1 and plan.group.lhs.dimension == divided:
        return None
    shared = limits.shared_bytes // (WIDTH * 4 * plan.rows)
    if plan.splits > 1:
        most = min(most, 1 << (shared.bit_length() - 1)) if shared else 0
    if most < plan.splits:
        return None
    columns = _columns(plan.tiling.num_panels, most // plan.splits)
    row_tiles = -(-plan.tiling.num_rows // plan.rows)
    groups = 1
    while groups * 2 * columns * plan.splits <= most and groups < row_tiles:
        groups *= 2
    shaped = replace(plan, columns=columns, groups=groups, split_level=level)
    shaped = replace(shaped, unroll=_unroll(shaped, limits))
    x, y = shaped.workgroups
    return shaped if x <= limits.workgroups[0] and y <= limits.workgroups[1] else None


def _unroll(plan: ShaderPlan, limits: GpuLimits) -> int:
    """As many trips as leave registers for a second workgroup on the core."""
    innermost = len(plan.trips) - 1
    if not plan.trips or plan.tiling.reductions[innermost] == plan.group.lhs.dimension:
        return 1
    stride = plan.splits if plan.split_level == innermost else 1
    spared = limits.registers // (2 * plan.invocations) - _OTHER_REGISTERS - WIDTH * plan.rows
    loaded = WIDTH * (plan.step + plan.rows)
    return next((n for n in (4, 2) if plan.trips[innermost] % (stride * n) == 0 and n * loaded <= spared), 1)


def _columns(panels: int, most: int) -> int:
    """Threads along panels: those of a warp read one row of the left factor, so many, but none idle."""
    choices = [columns for columns in (32, 16, 8, 4, 2, 1) if columns <= most]
    return min(choices, key=lambda columns: (-(-panels // columns) * columns / panels) * (1 + 0.02 * _WARP / columns))


def _cycles(plan: ShaderPlan, limits: GpuLimits) -> float:
    """Modelled time of the sums: what all threads issue, or what one waits for its loads, whichever is more."""
    loads = 0.0
    for operand in (*plan.lhs[:1], plan.rhs):
        count = plan.rows if operand is not plan.rhs else 1
        if operand is plan.rhs:
            by_vectors = {Direction.LANES: plan.step, Direction.TERMS: WIDTH * plan.step / WIDTH}
            loads += by_vectors.get(operand.direction, WIDTH * plan.step)
        elif operand.address.lanes:
            loads += count * plan.step * (1 if operand.direction is Direction.LANES else WIDTH)
        else:
            loads += count * (plan.step / WIDTH if operand.direction is Direction.TERMS else plan.step)
    trips = prod(plan.trips) / plan.splits
    waves = _waves(plan, limits)
    issue = WIDTH * plan.rows * plan.step + LOAD_ISSUE * loads
    gather = plan.rows * (plan.splits + 4) * LOAD_ISSUE * waves if plan.splits > 1 else 0.0
    return trips * max(LOAD_LATENCY, waves * issue) + gather


def _waves(plan: ShaderPlan, limits: GpuLimits) -> float:
    """How often the lanes of a core go over what it is given; the core with the most workgroups decides."""
    rounds = -(-prod(plan.workgroups) // limits.cores)
    return max(1.0, rounds * plan.invocations / CORE_LANES)


def accesses_after_sum(plan: ShaderPlan) -> int:
    """Loads and stores of one vector of sums, its result and what is read for it: the same for all shapes."""
    group, count = plan.group, 0
    for read in (*reads_after_sum(group), group.output):
        address = split_address(read.address, plan.tiling)
        whole = address is not None and direction_of(read.value, address, plan.tiling) is Direction.LANES
        count += 1 if whole else WIDTH
    return count
