"""How a contraction runs on a CPU: which dimension fills vectors, the register tile, and what a worker gets.

A tile of rows by vectors of lanes is accumulated in registers over the whole reduction: each step loads the panel's
vectors once and multiplies them by one element of each row. That needs the lanes of the right-hand side and of the
result to be adjacent in memory and nothing of the left-hand side, so rows may come from anywhere: gathered windows and
the taps of a convolution cost address arithmetic, not copies. Where they are not adjacent, long sums are stored element
by element, and a right-hand side that many rows read is laid out anew.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from enum import Enum, auto
from math import prod

from smartmem_mlir.index_maps.expr import Expr, dim, linearize
from smartmem_mlir.kernels.addresses import FIRST_REDUCTION, PANEL, ROW, SplitAddress, Tiling, split_address
from smartmem_mlir.kernels.cpu.blocks import CACHE_BYTES, WORK_PER_BYTE, choose_blocks, price
from smartmem_mlir.kernels.cpu.lanes import cut_width
from smartmem_mlir.kernels.groups import reads_after_sum
from smartmem_mlir.transforms.contraction_group import ContractionGroup, whole
from smartmem_mlir.transforms.view_ops import shape_of

LEAST_ROWS_TO_COPY = 16
"""Rows that must read the right factor before it is worth laying out anew when the model runs."""
LEAST_PER_PADDING = 32
"""Vectors that are stored for each that is padding, where another number of vectors for a panel would need none."""
LEAST_TERMS_TO_SCATTER = 32
"""Terms of a sum that hide writing each of its elements alone, some 16 stores for a vector. (32 x 49 x 33 x 32, written
columns first, takes IREE 1.3 ms.)"""


SET_PERIOD_BYTES = 4096
"""Addresses this far apart are in the same set of a first-level cache: 64 sets of 64 bytes."""
LINE_BYTES = 64
LINES_OF_A_SET = 7
"""For rows, of the 8 that x86 CPUs have; the panel's vectors pass through the others."""
MOST_ROWS = 14
"""Of a tile."""


class Storage(Enum):
    """How the right factor lies in memory."""

    GIVEN = auto()
    """As it is."""
    PANELS = auto()
    """[outer panels, panel, reductions, lane], zeros in the lanes that the last panel has too many: a weight."""
    ROWS = auto()
    """[outer panels, reductions, lanes]: a copy, made when the model runs."""


@dataclass(frozen=True)
class CpuVectors:
    """The vector registers of a CPU.

    Args:
        lanes: f32 elements of one.
        registers: How many there are.
    """

    lanes: int
    registers: int


@dataclass(frozen=True)
class KernelPlan:
    """A contraction group with its tiling and every address split.

    Args:
        group: What to compute.
        tiling: The walk over the iteration space.
        lhs: Address of each part of the left factor; its lanes may be 0 (one element times a vector) or 1 (a product
            of vectors).
        rhs: Address of the right factor.
        scale: Address of what the right factor is multiplied by, if anything.
        lanes: Elements of a vector.
        vectors: Vectors of a full panel; where it is the only one, the last may be narrower.
        tile_rows: Rows of a register tile.
        block_rows: Rows that one workgroup computes.
        block_panels: Panels that one workgroup computes.
        storage: How the right factor is to be stored.
    """

    group: ContractionGroup
    tiling: Tiling
    lhs: tuple[SplitAddress, ...]
    rhs: SplitAddress
    scale: SplitAddress | None
    lanes: int
    vectors: int
    tile_rows: int
    block_rows: int
    block_panels: int
    storage: Storage

    @property
    def workgroups(self) -> tuple[int, int]:
        """Workgroups along panels and along rows."""
        return -(-self.tiling.num_panels // self.block_panels), -(-self.tiling.num_rows // self.block_rows)

    @property
    def work(self) -> int:
        """Multiply-adds of the whole kernel."""
        return prod(self.group.root.extents)

    @property
    def cost(self) -> float:
        """As a launch of its own, see :func:`smartmem_mlir.kernels.cpu.blocks.price`."""
        return price(prod(self.workgroups), self.work_of(self.block_rows, self.block_panels))

    def work_of(self, rows: int, panels: int) -> float:
        """What a workgroup of so many rows and panels costs, in multiply-adds: the reads of both included."""
        tiling = self.tiling
        width = cut_width(tiling.extents[tiling.lane], self.lanes) / tiling.panels_per_lane_range
        terms = prod(tiling.reduction_extents)
        rows = -(-rows // self.tile_rows) * self.tile_rows
        lhs_bytes = 4 * sum(prod(shape_of(read.value)) for read in self.group.lhs.reads)
        rows_bytes = min(lhs_bytes * rows / tiling.num_rows, 4.0 * rows * terms)
        # The rows are gone over once a panel.
        passes = 1 if rows_bytes <= CACHE_BYTES else panels
        read = 4 * panels * terms * width + passes * rows_bytes
        return rows * panels * terms * width + read * WORK_PER_BYTE

    def in_blocks(self, beside: int) -> KernelPlan:
        """The same plan with the cheapest blocks for a launch of so many kernels."""
        units = -(-self.tiling.num_rows // self.tile_rows), self.tiling.num_panels
        row_tiles, panels = choose_blocks(units, lambda r, p: self.work_of(r * self.tile_rows, p), beside)
        return replace(self, block_rows=row_tiles * self.tile_rows, block_panels=panels)

    def in_rows(self, rows: int) -> KernelPlan:
        """The same plan with all panels of so many rows in a workgroup, in tiles that divide them best."""
        tallest = min(self.tile_rows, rows)
        fitting = range(max(1, tallest * 3 // 4), tallest + 1)
        tile_rows = min(fitting, key=lambda tile: (-(-rows // tile) * tile, -tile))
        return replace(self, tile_rows=tile_rows, block_rows=rows, block_panels=self.tiling.num_panels)


def plan_contraction(group: ContractionGroup, cpu: CpuVectors, constant_rhs: bool) -> KernelPlan | None:
    """Chooses lanes and tiles, for the factors in either role.

    Args:
        group: What to compute.
        cpu: Registers to fill.
        constant_rhs: Whether the right factor is known at compile time, so that it can be stored in any order.

    Returns:
        None when no dimension has adjacent lanes in every operand that needs them.
    """
    rhs = Storage.PANELS if constant_rhs else Storage.GIVEN
    attempts = [(group, rhs, scattered) for scattered in (False, True)]
    attempts.append((group, Storage.ROWS, False))
    if group.lhs.view is None:
        # A convolution of channels-first images: weights are the elements that multiply vectors of the image.
        swapped = replace(group, lhs=whole(group.rhs), rhs=group.lhs.reads[0])
        attempts.insert(1, (swapped, Storage.GIVEN, False))
        attempts.append((swapped, Storage.ROWS, False))
    elsewhere = {read.value for read in reads_after_sum(group)}
    if group.scale is not None:
        elsewhere.add(group.scale.read.value)
    plans = (
        _plan_factors(factors, cpu, storage, scattered)
        for factors, storage, scattered in attempts
        if storage is Storage.GIVEN or factors.rhs.value not in {*elsewhere, *(r.value for r in factors.lhs.reads)}
    )
    return next((plan for plan in plans if plan is not None), None)


def _plan_factors(group: ContractionGroup, cpu: CpuVectors, storage: Storage, scattered: bool) -> KernelPlan | None:
    """Chooses lanes and tiles for factors in their roles.

    Args:
        group: What to compute.
        cpu: Registers to fill.
        storage: How the right factor is to be stored.
        scattered: Whether elements of the result, and of what is read for each, may be apart.
    """
    root = group.root
    parallel = [d for d, reduced in enumerate(root.reductions) if not reduced]
    in_lhs = frozenset().union(*(expr.dims for read in group.lhs.reads for expr in read.access), ())
    in_rhs = frozenset().union(*(expr.dims for expr in group.rhs.access), ())
    # The last dimension of the result is the likeliest to be adjacent; a dimension of the right factor alone is best.
    candidates = sorted((d for d in parallel if d in in_rhs), key=lambda d: (d in in_lhs, -d))
    for lane in candidates:
        for vectors, lanes in _panels(root.extents[lane], lane in in_lhs, cpu):
            tiling = Tiling(
                extents=root.extents,
                rows=tuple(d for d in parallel if d not in in_rhs),
                panels=tuple(d for d in parallel if d in in_rhs and d != lane),
                lane=lane,
                reductions=_reduction_order(group, lane),
                panel_width=min(vectors * lanes, cut_width(root.extents[lane], lanes)),
            )
            plan = _fitting(group, tiling, vectors, lanes, cpu, storage, scattered)
            if plan is not None:
                return plan
    return None


def _reduction_order(group: ContractionGroup, lane: int) -> tuple[int, ...]:
    """Reductions with the one whose steps are shortest in the left factor innermost."""
    root = group.root
    terms = group.lhs.reads[0].address.terms
    strides = [(abs(next((c for a, c in terms if _is(a, d)), 1 << 40)), d) for d in _reduced(root)]
    return tuple(d for _, d in sorted(strides, reverse=True))


def _is(atom: object, d: int) -> bool:
    return getattr(atom, "index", None) == d


def _reduced(root: object) -> list[int]:
    return [d for d, reduced in enumerate(root.reductions) if reduced]  # type: ignore[attr-defined]


def _panels(extent: int, vector_times_vector: bool, cpu: CpuVectors) -> list[tuple[int, int]]:
    """(vectors, lanes) to try for a lane dimension, the likely fastest first."""
    lanes = cpu.lanes
    while lanes > 4 and lanes // 2 >= extent:
        lanes //= 2
    needed = -(-extent // lanes)
    if vector_times_vector:
        return [(v, lanes) for v in (1, 2) if v <= needed]
    # Panels of one vector read an element of the left factor for that one; of more, they may be stored with padding.
    padding = {v: -needed % v for v in (2, 3, 4, 1) if v <= needed}
    fitting = sorted(padding, key=lambda v: (padding[v] * LEAST_PER_PADDING > needed, v == 1, padding[v]))
    return [(v, lanes) for v in fitting]


def _fitting(
    group: ContractionGroup,
    tiling: Tiling,
    vectors: int,
    lanes: int,
    cpu: CpuVectors,
    storage: Storage,
    scattered: bool,
) -> KernelPlan | None:
    lhs = [split_address(read.address, tiling) for read in group.lhs.reads]
    rhs = _rhs_address(group, tiling, storage)
    if rhs is None or rhs.lanes != 1 or ROW in rhs.outer.dims:
        return None
    if storage is Storage.ROWS and tiling.num_rows < LEAST_ROWS_TO_COPY:
        return None
    parts = tuple(address for address in lhs if address is not None and address.lanes in (0, 1))
    if len(parts) < len(lhs) or len({address.lanes for address in parts}) != 1:
        return None
    if scattered and prod(tiling.reduction_extents) < LEAST_TERMS_TO_SCATTER:
        return None
    output = split_address(group.output.address, tiling)
    if output is None or (output.lanes != 1 and not (scattered and output.lanes)):
        return None
    others = [split_address(read.address, tiling) for read in reads_after_sum(group)]
    if any(other is None or (other.lanes not in (0, 1) and not scattered) for other in others):
        return None
    scale = None if group.scale is None else split_address(group.scale.read.address, tiling)
    if group.scale is not None and (scale is None or scale.lanes or scale.outer.dims):
        return None
    tile_rows = min(_tile_rows(tiling.num_rows, vectors, parts[0].lanes, cpu), rows_in_cache(parts[0]))
    plan = KernelPlan(group, tiling, parts, rhs, scale, lanes, vectors, tile_rows, 0, 0, storage)
    return plan.in_blocks(1)


def _rhs_address(group: ContractionGroup, tiling: Tiling, storage: Storage) -> SplitAddress | None:
    if storage is Storage.PANELS:
        return packed_address(tiling)
    if storage is Storage.GIVEN:
        return split_address(group.rhs.address, tiling)
    order = (*tiling.panels, *tiling.reductions, tiling.lane)
    return split_address(linearize([dim(d) for d in order], [tiling.extents[d] for d in order]), tiling)


def packed_address(tiling: Tiling) -> SplitAddress:
    """Address of an element of the packed right factor."""
    step = tiling.panel_width
    inner = Expr(0)
    for i in reversed(range(len(tiling.reductions))):
        inner = inner + dim(FIRST_REDUCTION + i) * step
        step *= tiling.reduction_extents[i]
    return SplitAddress(dim(PANEL) * step, inner, 1)


def rows_in_cache(lhs: SplitAddress) -> int:
    """Rows whose elements in one column do not evict each other from the first-level cache.

    A step of the sum reads one element of each row, the next step its neighbour in the same cache line. Rows a multiple
    of 4 KiB apart compete for the few lines of one set: of 14 of them, each element came from the second level.
    """
    stride = lhs.row_stride
    if not stride or lhs.lanes:
        return MOST_ROWS
    sets: defaultdict[int, set[int]] = defaultdict(set)
    for row in range(MOST_ROWS):
        line = 4 * stride * row // LINE_BYTES
        lines = sets[line % (SET_PERIOD_BYTES // LINE_BYTES)]
        lines.add(line)
        if len(lines) > LINES_OF_A_SET:
            return row
    return MOST_ROWS


def _tile_rows(rows: int, vectors: int, lhs_lanes: int, cpu: CpuVectors) -> int:
    """Rows of a tile: as many as registers allow, shrunk when the same number of tiles then wastes fewer rows."""
    # The panel's vectors and one of the left factor, unless the machine multiplies by an element in memory.
    spare = vectors + (0 if cpu.registers >= 32 and not lhs_lanes else 1)
    most = max(1, min((cpu.registers - spare) // vectors, MOST_ROWS, rows))
    tiles = -(-rows // most)
    return -(-rows // tiles)
