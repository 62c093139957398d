"""The ways in which a kernel over rows can walk a row, whatever it runs on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from smartmem_mlir.index_maps.expr import ZERO, Expr, dim
from smartmem_mlir.index_maps.refine import refine
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
    # In program order: equal groups must come to kernels with equal arguments.
    arguments = (a for step in group.steps for a in step.arguments if isinstance(a, Read))
    reads = list(dict.fromkeys(read for read in arguments if splat_constant(read.value) is None))
    # Columns are split so that no address divides them; rows stay, their addresses may divide.
    at = [dim(d) if d in group.columns else ZERO for d in range(len(group.extents))]
    accesses = [[expr.substitute(at) for expr in read.access] for read in (*reads, group.output)]
    refinement = refine(group.extents, accesses)
    if refinement is None:
        return
    columns = [d for original in group.columns for d in refinement.digits(original)]
    for lane in sorted(columns, key=lambda d: (-refinement.extents[d], -d)):
        tiling = Tiling(
            extents=refinement.extents,
            rows=tuple(d for d in range(len(refinement.extents)) if d not in columns),
            panels=(),
            lane=lane,
            reductions=tuple(d for d in columns if d != lane and refinement.extents[d] > 1),
            panel_width=refinement.extents[lane],
        )
        found = _split(group, reads, tiling, refinement.exprs())
        if found is not None:
            yield found


def _split(group: RowGroup, reads: Sequence[Read], tiling: Tiling, refined: tuple[Expr, ...]) -> RowTiling | None:
    def split(read: Read) -> SplitAddress | None:
        return split_address(read.address.substitute(refined), tiling)

    output = split(group.output)
    wanted = 1 if group.steps[-1].kind is Kind.FULL else 0
    if output is None or output.lanes != wanted:
        return None
    found = {read: address for read in reads if (address := split(read)) is not None and address.lanes in (0, 1)}
    return RowTiling(tiling, refined, found, output) if len(found) == len(reads) else None
