"""How a contraction of f16 runs on cooperative matrices: which factors can be loaded as such, and the best tiles.

A subgroup sums a tile of small matrices, whose rows it loads from buffers, without workgroup memory: a factor must
have one distance between the rows of a matrix and elements that are adjacent along the other side. Subgroups divide
long sums among them. What follows the sum is the work of threads again, by vectors of four lanes.
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
from smartmem_mlir.kernels.groups import is_f16
from smartmem_mlir.kernels.spirv.limits import CORE_LANES, CooperativeMatrices, GpuLimits
from smartmem_mlir.kernels.spirv.plan import LOAD_ISSUE, LOAD_LATENCY, ShaderPlan, accesses_after_sum
from smartmem_mlir.kernels.spirv.vectors import WIDTH
from smartmem_mlir.transforms.view_ops import splat_constant

_ALIGNMENT = 8
"""Elements of f16 at multiples of which the rows of a matrix in memory begin: 16 bytes, which loads ask for."""
_TILES = (1, 2, 3, 4)
"""Matrices of a subgroup's tile along rows, and along lanes."""
_SUBGROUPS = ((1, 1), (1, 2), (2, 1), (2, 2), (1, 4), (4, 1))
"""Subgroups of a workgroup along rows and along lanes that compute tiles of their own."""
_MOST_SUBGROUPS = 8
_REGISTERS = 168
"""32-bit registers of a thread for matrices, so that a core holds two subgroups for each of its schedulers."""
_CORE_PRODUCTS = 1024
"""Multiply-adds of matrices that a core starts in one cycle."""
_CORE_BYTES = 48
"""Bytes that a core loads from its caches in one cycle."""


@dataclass(frozen=True)
class MatrixRead:
    """How matrices of a factor are loaded.

    Args:
        outer: Address over row and panel, at the start of the sum.
        inner: What moves with the sum.
        pitch: Distance between rows of the matrix in memory.
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
        left: How the left factor is loaded.
        right: How the right factor is loaded.
        matrices: What the device multiplies.
        tile: Matrices of a subgroup's tile, along rows and along lanes.
        subgroups: Of a workgroup, along rows and along lanes.
        splits: Subgroups that divide a sum.
        unroll: Trips of the innermost loop that are written out.
    """

    left: MatrixRead = None  # type: ignore[assignment]
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
    def shared_vectors(self) -> int:
        """Vectors of workgroup memory."""
        return prod(self.subgroups) * self.splits * self.region

    @property
    def trips(self) -> tuple[int, ...]:
        """Trip counts of the loops over the sum, without division among subgroups."""
        *outer, inner = self.tiling.reduction_extents
        return *outer, inner // self.matrices.terms


def cooperative_plans(plan: ShaderPlan, limits: GpuLimits) -> Iterator[tuple[float, MatrixPlan]]:
    """Every tile and workgroup by which a plan's factors can be loaded as matrices, each with its time in cycles."""
    matrices = limits.matrices
    if matrices is None or not _has_matrices(plan, matrices):
        return
    left, right = _left(plan, matrices), _right(plan, matrices)
    if left is None or right is None:
        return
    accesses = accesses_after_sum(plan)
    values = {field: getattr(plan, field) for field in ShaderPlan.__dataclass_fields__}
    base = MatrixPlan(**values, left=left, right=right, matrices=matrices)
    for tile, subgroups, splits in product(product(_TILES, _TILES), _SUBGROUPS, (1, 2, 4, 8)):
        shaped = replace(base, tile=tile, subgroups=subgroups, splits=splits)
        if _fits(shaped, limits):
            shaped = replace(shaped, unroll=_unroll(shaped))
            yield _cycles(shaped, limits, accesses), shaped


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


def _left(plan: ShaderPlan, matrices: CooperativeMatrices) -> MatrixRead | None:
    """Rows of the left factor: those of a matrix at one distance, and the terms of a row adjacent."""
    tiling, address = plan.tiling, plan.lhs[0].address
    split = _innermost(address, tiling)
    if split is None or split[0] != 1 or address.lanes or _within_range(address.outer, tiling) != 0:
        return None
    pitch = _row_pitch(address, tiling, matrices.rows)
    if pitch is None or pitch % _ALIGNMENT or not _is_aligned(address.outer) or not _is_aligned(split[1]):
        return None
    return MatrixRead(address.outer, address.inner, pitch, by_columns=False)


def _right(plan: ShaderPlan, matrices: CooperativeMatrices) -> MatrixRead | None:
    """Lanes of the right factor: adjacent, or each with adjacent terms."""
    tiling, address = plan.tiling, plan.rhs.address
    if plan.packed:
        return _packed(tiling, matrices)
    split = _innermost(address, tiling)
    if split is None or _within_range(address.outer, tiling) != WIDTH * address.lanes:
        return None
    by_columns = split[0] == 1 and address.lanes != 1
    pitch = address.lanes if by_columns else split[0]
    if (not by_columns and address.lanes != 1) or pitch % _ALIGNMENT:
        return None
    # Where matrices begin; panels between need no alignment.
    count, panels = tiling.panels_per_lane_range, matrices.lanes // WIDTH
    starts = address.outer.substitute([dim(0), dim(1) * count + dim(2) * panels])
    box = Box.of((tiling.num_rows, tiling.num_panels // count, count // panels))
    if not all(map(_is_aligned, (*simplify_exprs([starts], box), split[1]))):
        return None
    return MatrixRead(address.outer, address.inner, pitch, by_columns)


def _packed(tiling: Tiling, matrices: CooperativeMatrices) -> MatrixRead:
    """Of a weight that is stored matrix by matrix, each with adjacent terms: so a thread loads several at once."""
    terms = tiling.reduction_extents
    inner = linearize([dim(FIRST_REDUCTION + i) for i in range(len(terms))], terms) * matrices.lanes
    # Read at panels with which matrices begin.
    return MatrixRead(dim(PANEL) * (prod(terms) * WIDTH), inner, matrices.terms, by_columns=True)


def _innermost(address: SplitAddress, tiling: Tiling) -> tuple[int, Expr] | None:
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


def _row_pitch(address: SplitAddress, tiling: Tiling, rows: int) -> int | None:
    """The distance between successive rows of a matrix, None if it varies."""
    if address.row_stride is not None:
        return address.row_stride
    if tiling.num_rows % rows:
        return None
    over = address.outer.substitute([dim(0) * rows + dim(2), dim(1)])
    (found,) = simplify_exprs([over], Box.of((tiling.num_rows // rows, tiling.num_panels, rows)))
    return _distance(found, 2)


def _distance(expr: Expr, index: int) -> int | None:
    distance = expr.coefficient(Dim(index))
    return None if index in (expr - dim(index) * distance).dims else distance


def _is_aligned(expr: Expr) -> bool:
    return expr.const % _ALIGNMENT == 0 and all(coefficient % _ALIGNMENT == 0 for _, coefficient in expr.terms)


def _fits(plan: MatrixPlan, limits: GpuLimits) -> bool:
    rows, lanes = plan.extents
    whole = plan.tiling.num_rows >= rows and plan.tiling.extents[plan.tiling.lane] % lanes == 0
    few = prod(plan.subgroups) * plan.splits <= _MOST_SUBGROUPS and plan.invocations <= limits.invocations
    if not whole or not few or plan.shared_vectors * WIDTH * 4 > limits.shared_bytes or plan.trips[-1] < plan.splits:
        return False
    across, down = plan.workgroups
    return across <= limits.workgroups[0] and down <= limits.workgroups[1] and _registers(plan, 1) <= _REGISTERS


def _registers(plan: MatrixPlan, unroll: int) -> int:
    """Of a thread, for the sums and for what is loaded of so many trips."""
    matrices, (rows, lanes) = plan.matrices, plan.tile
    sums = rows * lanes * matrices.rows * matrices.lanes // matrices.subgroup
    loaded = (rows * matrices.rows + lanes * matrices.lanes) * matrices.terms // (2 * matrices.subgroup)
    return sums + unroll * loaded


def _unroll(plan: MatrixPlan) -> int:
    """As many trips as divide the loop evenly and leave registers."""
    return next(
        (n for n in (8, 6, 4, 3, 2) if not plan.trips[-1] % (plan.splits * n) and _registers(plan, n) <= _REGISTERS), 1
    )


def _cycles(plan: MatrixPlan, limits: GpuLimits, accesses: int) -> float:
    """Modelled time: of the matrices, or of their loads, or of waiting for those, whichever is most; then the rest."""
    matrices, (rows, lanes) = plan.matrices, plan.tile
    trips = prod(plan.trips[:-1]) * -(-plan.trips[-1] // plan.splits)
    rounds = -(-prod(plan.workgroups) // limits.cores)
    busy = rounds * prod(plan.subgroups) * plan.splits * trips
    products = busy * rows * lanes * matrices.rows * matrices.lanes * matrices.terms / _CORE_PRODUCTS
    loads = busy * 2 * matrices.terms * (rows * matrices.rows + lanes * matrices.lanes) / _CORE_BYTES
    waiting = trips / plan.unroll * LOAD_LATENCY
    vectors = prod(plan.extents) / (WIDTH * plan.invocations)
    waves = max(1.0, rounds * plan.invocations / CORE_LANES)
    return max(products, loads, waiting) + vectors * (plan.splits + 2 + accesses) * LOAD_ISSUE * waves
