"""How a contraction of f16 runs on cooperative matrices: which factors can be loaded as such, and the best tiles.

A subgroup sums a tile of small matrices. The left factor comes through workgroup memory: threads copy whole blocks of
its rows, wherever those are, so that a row may be a pixel, a token of a window or anything else with adjacent terms.
The right factor is loaded from its buffer, a weight matrix by matrix. Subgroups divide long sums among them. What
follows the sum is the work of threads again, by vectors of four lanes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import Dim, Expr, dim, linearize
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.kernels.addresses import FIRST_REDUCTION, PANEL, SplitAddress, Tiling
from smartmem_mlir.kernels.groups import is_f16, reads_after_sum
from smartmem_mlir.kernels.spirv.limits import CORE_LANES, CooperativeMatrices, GpuLimits
from smartmem_mlir.kernels.spirv.plan import LOAD_ISSUE, ShaderPlan, accesses_after_sum
from smartmem_mlir.kernels.spirv.vectors import WIDTH
from smartmem_mlir.transforms.view_ops import splat_constant

BLOCK = 8
"""Elements of f16 that a thread copies at once, 16 bytes: rows of matrices in memory begin at multiples of them."""
_TILES = (1, 2, 3, 4)
"""Matrices of a subgroup's tile along rows, and along lanes."""
_SUBGROUPS = ((1, 1), (1, 2), (2, 1), (2, 2), (1, 4), (4, 1))
"""Subgroups of a workgroup along rows and along lanes that compute tiles of their own."""
_SPLITS = (1, 2, 3, 4, 6, 8, 12, 16)
_UNROLLS = (8, 6, 4, 3, 2, 1)
_MOST_SUBGROUPS = 16
_MOST_COPIED = 8
"""Blocks that a thread copies in one trip."""
_REGISTERS = 168
"""32-bit registers of a thread for matrices and blocks: a core then holds two subgroups for each of its schedulers."""
_CORE_PRODUCTS = 1024
"""Multiply-adds of matrices that a core starts in one cycle."""
_COPY, _SHARED_LOAD, _LOAD, _SCATTERED_LOAD = 8, 8, 16, 64
"""Cycles of a core for a matrix: copied to workgroup memory, loaded from there, loaded from where its rows are
adjacent, and from where each is in a cache line of its own. The last two are fitted to an H200."""
_TRIP = 1500
"""Cycles from the loads of a trip to its products, with the barriers between."""


@dataclass(frozen=True)
class MatrixRead:
    """How matrices of the right factor are loaded.

    Args:
        outer: Address of an element over the panel, at the start of the sum.
        inner: Blocks that it moves with the sum, whose last dimension counts matrices.
        pitch: Blocks between rows of the matrix in memory.
        by_columns: Whether what is adjacent are its columns' elements.
    """

    outer: Expr
    inner: Expr
    pitch: int
    by_columns: bool


@dataclass(frozen=True)
class MatrixPlan(ShaderPlan):
    """A contraction by cooperative matrices. Of `ShaderPlan`, `rows` to `unroll` have no meaning but these.

    Args:
        right: How the right factor is loaded.
        matrices: What the device multiplies.
        tile: Matrices of a subgroup's tile, along rows and along lanes.
        subgroups: Of a workgroup, along rows and along lanes.
        splits: Subgroups that divide a sum.
        unroll: Matrices along the innermost sum that one trip multiplies.
    """

    right: MatrixRead = None  # type: ignore[assignment]
    matrices: CooperativeMatrices = None  # type: ignore[assignment]
    tile: tuple[int, int] = (1, 1)
    subgroups: tuple[int, int] = (1, 1)

    @property
    def subgroup_extents(self) -> tuple[int, int]:
        """Rows and lanes of a subgroup's tile."""
        return self.tile[0] * self.matrices.rows, self.tile[1] * self.matrices.lanes

    @property
    def extents(self) -> tuple[int, int]:
        """Rows and lanes of a workgroup's tile."""
        rows, lanes = self.subgroup_extents
        return rows * self.subgroups[0], lanes * self.subgroups[1]

    @property
    def invocations(self) -> int:
        """Threads of a workgroup."""
        return prod(self.subgroups) * self.splits * self.matrices.subgroup

    @property
    def blocks(self) -> int:
        """Tiles of workgroups that a range of lanes is cut into."""
        return self.tiling.extents[self.tiling.lane] // self.extents[1]

    @property
    def workgroups(self) -> tuple[int, int]:
        """Workgroups along lanes, in all panels, and along rows."""
        across = self.tiling.num_panels // self.tiling.panels_per_lane_range * self.blocks
        return across, -(-self.tiling.num_rows // self.extents[0])

    @property
    def region(self) -> int:
        """Vectors of a subgroup's tile."""
        return prod(self.subgroup_extents) // WIDTH

    @property
    def row_blocks(self) -> int:
        """Blocks of a row of the left factor that one trip multiplies."""
        return self.unroll * self.matrices.terms // BLOCK

    @property
    def row_pitch(self) -> int:
        """Blocks between rows of the left factor in workgroup memory: odd, so that rows are in different banks."""
        return self.row_blocks + 1 - self.row_blocks % 2

    @property
    def copied_rows(self) -> int:
        """Rows of the left factor in workgroup memory: those of the tile once for each part of the sum."""
        return self.extents[0] * self.splits

    @property
    def copiers(self) -> int:
        """Threads that copy for one part of the sum."""
        return self.invocations // self.splits

    @property
    def shared_vectors(self) -> int:
        """Vectors of four f32 in workgroup memory: first of blocks, then of sums."""
        return max(self.copied_rows * self.row_pitch, prod(self.subgroups) * self.splits * self.region)

    @property
    def trips(self) -> tuple[int, ...]:
        """Trip counts of the loops over the sum, without division among subgroups."""
        *outer, inner = self.tiling.reduction_extents
        return *outer, inner // (self.matrices.terms * self.unroll)

    @property
    def rounds(self) -> int:
        """Trips of a subgroup, one after the other."""
        return prod(self.trips) // self.splits


def cooperative_plans(plan: ShaderPlan, limits: GpuLimits) -> Iterator[tuple[float, MatrixPlan]]:
    """Every tile and workgroup by which a plan's factors can be loaded as matrices, each with its time in cycles."""
    matrices = limits.matrices
    if matrices is None or not _has_matrices(plan, matrices) or not _has_blocks(plan):
        return
    right = _packed(plan.tiling, matrices) if plan.packed else _right(plan, matrices)
    if right is None:
        return
    accesses = accesses_after_sum(plan)
    values = {field: getattr(plan, field) for field in ShaderPlan.__dataclass_fields__}
    base = MatrixPlan(**values, right=right, matrices=matrices)
    for tile, subgroups in product(product(_TILES, _TILES), _SUBGROUPS):
        tiled = replace(base, tile=tile, subgroups=subgroups)
        rows, lanes = tiled.extents
        if plan.tiling.num_rows < rows or plan.tiling.extents[plan.tiling.lane] % lanes:
            continue
        for splits, unroll in product(_SPLITS, _unrolls(plan.tiling, matrices)):
            if prod(subgroups) * splits <= _MOST_SUBGROUPS:
                shaped = replace(tiled, splits=splits, unroll=unroll)
                if _fits(shaped, limits):
                    yield _cycles(shaped, limits, accesses), shaped


def _unrolls(tiling: Tiling, matrices: CooperativeMatrices) -> list[int]:
    """Matrices that a trip may multiply: whole trips make up the innermost sum."""
    count = tiling.reduction_extents[-1] // matrices.terms
    return [unroll for unroll in _UNROLLS if count % unroll == 0]


def _has_matrices(plan: ShaderPlan, matrices: CooperativeMatrices) -> bool:
    """Whether the factors are whole matrices of f16."""
    tiling = plan.tiling
    if plan.scale is not None or len(plan.lhs) > 1 or not tiling.reductions:
        return False
    factors = (plan.lhs[0].value, plan.rhs.value)
    if not all(is_f16(value.type) and splat_constant(value) is None for value in factors):
        return False
    whole = tiling.extents[tiling.lane] % matrices.lanes == 0 and tiling.reduction_extents[-1] % matrices.terms == 0
    return whole and tiling.num_rows >= matrices.rows


def _has_blocks(plan: ShaderPlan) -> bool:
    """Whether rows of the left factor are blocks of terms, alike for all lanes, and each factor is read only once."""
    tiling, factor = plan.tiling, plan.lhs[0]
    values = [factor.value, plan.rhs.value, *{read.value for read in reads_after_sum(plan.group)}]
    split = innermost(factor.address, tiling)
    if split is None or split[0] != 1 or factor.address.lanes or len(set(values)) < len(values):
        return False
    aligned = _is_aligned(factor.address.outer) and _is_aligned(split[1])
    return aligned and _within_range(factor.address.outer, tiling) == 0


def _right(plan: ShaderPlan, matrices: CooperativeMatrices) -> MatrixRead | None:
    """Lanes of the right factor: adjacent, or each with adjacent terms."""
    tiling, address = plan.tiling, plan.rhs.address
    split = innermost(address, tiling)
    if split is None or _within_range(address.outer, tiling) != WIDTH * address.lanes:
        return None
    by_columns = split[0] == 1 and address.lanes != 1
    pitch = address.lanes if by_columns else split[0]
    # The device takes the distance for a number without a sign.
    if (not by_columns and address.lanes != 1) or pitch % BLOCK or pitch <= 0:
        return None
    # Where matrices begin; panels between need no alignment.
    count, panels = tiling.panels_per_lane_range, matrices.lanes // WIDTH
    starts = address.outer.substitute([dim(0), dim(1) * count + dim(2) * panels])
    box = Box.of((tiling.num_rows, tiling.num_panels // count, count // panels))
    if not all(map(_is_aligned, (*simplify_exprs([starts], box), split[1]))):
        return None
    return MatrixRead(address.outer, _of_matrices(address.inner, tiling, matrices), pitch // BLOCK, by_columns)


def _packed(tiling: Tiling, matrices: CooperativeMatrices) -> MatrixRead:
    """Of a weight that is stored matrix by matrix, each with adjacent terms: so a thread loads several at once."""
    terms = tiling.reduction_extents
    inner = linearize([dim(FIRST_REDUCTION + i) for i in range(len(terms))], terms) * matrices.lanes
    # Read at panels with which matrices begin.
    blocks = _of_matrices(inner, tiling, matrices)
    return MatrixRead(dim(PANEL) * (prod(terms) * WIDTH), blocks, matrices.terms // BLOCK, by_columns=True)


def _of_matrices(inner: Expr, tiling: Tiling, matrices: CooperativeMatrices) -> Expr:
    """What moves with the sum, in blocks and over matrices."""
    count = FIRST_REDUCTION + len(tiling.reductions)
    by_matrix = [dim(i) for i in range(count - 1)]
    return eighth(inner.substitute([*by_matrix, dim(count - 1) * matrices.terms]))


def eighth(expr: Expr) -> Expr:
    """What is visibly a multiple of a block, counted in blocks."""
    return Expr(expr.const // BLOCK, tuple((atom, coefficient // BLOCK) for atom, coefficient in expr.terms))


def innermost(address: SplitAddress, tiling: Tiling) -> tuple[int, Expr] | None:
    """The distance between successive terms, and the rest of what moves with the sum; None if it varies."""
    innermost = Dim(FIRST_REDUCTION + len(tiling.reductions) - 1)
    distance = address.inner.coefficient(innermost)
    rest = address.inner - dim(innermost.index) * distance
    return None if innermost.index in rest.dims else (distance, rest)


def _within_range(outer: Expr, tiling: Tiling) -> int | None:
    """The distance between successive panels of one range of lanes, None if it varies."""
    count = tiling.panels_per_lane_range
    over = outer.substitute([dim(0), dim(1) * count + dim(2)])
    (found,) = simplify_exprs([over], Box.of((tiling.num_rows, tiling.num_panels // count, count)))
    return _distance(found, 2)


def _distance(expr: Expr, index: int) -> int | None:
    distance = expr.coefficient(Dim(index))
    return None if index in (expr - dim(index) * distance).dims else distance


def _is_aligned(expr: Expr) -> bool:
    return expr.const % BLOCK == 0 and all(coefficient % BLOCK == 0 for _, coefficient in expr.terms)


def _fits(plan: MatrixPlan, limits: GpuLimits) -> bool:
    # All subgroups pass the barriers of every trip together, and each thread copies for one part of the sum.
    if prod(plan.trips) % plan.splits or plan.extents[0] * plan.row_blocks % plan.copiers:
        return False
    if plan.invocations > limits.invocations or _copied(plan) > _MOST_COPIED:
        return False
    across, down = plan.workgroups
    fits = across <= limits.workgroups[0] and down <= limits.workgroups[1]
    return fits and plan.shared_vectors * WIDTH * 4 <= limits.shared_bytes and _registers(plan) <= _REGISTERS


def _copied(plan: MatrixPlan) -> int:
    """Blocks that a thread copies in one trip."""
    return plan.extents[0] * plan.row_blocks // plan.copiers


def _registers(plan: MatrixPlan) -> int:
    """Of a thread, for the sums and for what a trip loads."""
    matrices, (rows, lanes) = plan.matrices, plan.tile
    sums = rows * lanes * matrices.rows * matrices.lanes // matrices.subgroup
    left, right = (
        n * matrices.terms // (2 * matrices.subgroup) for n in (rows * matrices.rows, lanes * matrices.lanes)
    )
    # Two trips' right factors: one's are loaded while the other's are multiplied.
    return sums + left + 2 * plan.unroll * right + (WIDTH + 2) * _copied(plan)


def _cycles(plan: MatrixPlan, limits: GpuLimits, accesses: int) -> float:
    """Modelled time: of the matrices, or of their loads, or of waiting for those, whichever is most; then the rest."""
    matrices, (rows, lanes) = plan.matrices, plan.tile
    terms = plan.rounds * plan.unroll
    rounds = -(-prod(plan.workgroups) // limits.cores)
    busy = rounds * prod(plan.subgroups) * plan.splits * terms
    products = busy * rows * lanes * matrices.rows * matrices.lanes * matrices.terms / _CORE_PRODUCTS
    left = rows * (_SHARED_LOAD + _COPY / plan.subgroups[1])
    right = lanes * (_LOAD if plan.packed else _SCATTERED_LOAD)
    waiting = (plan.rounds + 1) * _TRIP
    vectors = prod(plan.extents) / (WIDTH * plan.invocations)
    waves = max(1.0, rounds * plan.invocations / CORE_LANES)
    return max(products, busy * (left + right), waiting) + vectors * (plan.splits + 2 + accesses) * LOAD_ISSUE * waves
