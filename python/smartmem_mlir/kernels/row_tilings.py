"""The ways in which a kernel over rows can walk a row, whatever it runs on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from smartmem_mlir.index_maps.expr import ZERO, Expr, dim
from smartmem_mlir.index_maps.refine import Refinement, refine
from smartmem_mlir.kernels.addresses import SplitAddress, Tiling, split_address
from smartmem_mlir.transforms.contraction_group import Read
from smartmem_mlir.transforms.row_group import Kind, RowGroup
from smartmem_mlir.transforms.view_ops import splat_constant


@dataclass(frozen=True)
class RowTiling:
    """One way, with every address split.

    Args:
        tiling: Rows, the dimension that fills vectors as lanes, and the other columns as reductions.
        refined: Each dimension of the group over the tiling's iteration space.
        reads: Address of everything that is read, in program order.
        output: Address of the result.
    """

    tiling: Tiling
    refined: tuple[Expr, ...]
    reads: dict[Read, SplitAddress]
    output: SplitAddress


def row_tilings(group: RowGroup) -> Iterator[RowTiling]:
    """Those in which vectors are adjacent in memory wherever a row is read or written, longest lanes first."""
    space = _space(group)
    if space is None:
        return
    extents = space.refinement.extents
    for lane in sorted(space.columns, key=lambda d: (-extents[d], -d)):
        reductions = tuple(d for d in space.columns if d != lane and extents[d] > 1)
        tiling = Tiling(extents, space.rows, (), lane, reductions, extents[lane])
        found = _split(group, space, tiling)
        if found is not None:
            yield found


def element_tiling(group: RowGroup) -> RowTiling | None:
    """All columns as reductions, and one lane that is no column: for rows whose elements are not adjacent."""
    space = _space(group)
    if space is None:
        return None
    extents = space.refinement.extents
    reductions = tuple(d for d in space.columns if extents[d] > 1)
    return _split(group, space, Tiling((*extents, 1), space.rows, (), len(extents), reductions, 1))


@dataclass(frozen=True)
class _Space:
    """What a group is walked over.

    Args:
        reads: Everything that is read, in program order.
        refinement: Of the group's dimensions.
        columns: Refined dimensions that columns are of.
    """

    reads: tuple[Read, ...]
    refinement: Refinement
    columns: tuple[int, ...]

    @property
    def rows(self) -> tuple[int, ...]:
        """The other dimensions."""
        return tuple(d for d in range(len(self.refinement.extents)) if d not in self.columns)


def _space(group: RowGroup) -> _Space | None:
    # In program order: equal groups must come to kernels with equal arguments.
    arguments = (a for step in group.steps for a in step.arguments if isinstance(a, Read))
    reads = tuple(dict.fromkeys(read for read in arguments if splat_constant(read.value) is None))
    # Columns are split so that no address divides them; rows stay, their addresses may divide.
    at = [dim(d) if d in group.columns else ZERO for d in range(len(group.extents))]
    accesses = [[expr.substitute(at) for expr in read.access] for read in (*reads, group.output)]
    refinement = refine(group.extents, accesses)
    if refinement is None:
        return None
    return _Space(reads, refinement, tuple(d for original in group.columns for d in refinement.digits(original)))


def _split(group: RowGroup, space: _Space, tiling: Tiling) -> RowTiling | None:
    refined = space.refinement.exprs()

    def split(read: Read) -> SplitAddress | None:
        return split_address(read.address.substitute(refined), tiling)

    output = split(group.output)
    wanted = 1 if group.steps[-1].kind is Kind.FULL and tiling.lane < len(space.refinement.extents) else 0
    if output is None or output.lanes != wanted:
        return None
    found = {read: address for read in space.reads if (address := split(read)) is not None and address.lanes in (0, 1)}
    return RowTiling(tiling, refined, found, output) if len(found) == len(space.reads) else None
