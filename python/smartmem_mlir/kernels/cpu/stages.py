"""Kernels that one workgroup runs one after the other on the same rows: the stages of a launch.

A feed-forward network is a product, another one, a residual addition and the next normalisation; each row of each is
computed from the same row of the one before. Whether that is so is read from the index maps (`row_blocks.py`). Whether
it pays is a matter of cost: a workgroup reads the weights of all stages, and all panels of a row are its own, so that
few rows of long products keep fewer workers busy than separate kernels would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from mlir import ir

from smartmem_mlir.kernels.cpu.blocks import WORKERS, price, sizes
from smartmem_mlir.kernels.cpu.kernel import Kernel
from smartmem_mlir.kernels.cpu.row_blocks import RowBlocks, RowRead
from smartmem_mlir.transforms.ir_walk import Positions, users

LAUNCH_WORK = 250_000
"""What a launch costs while all workers wait, in multiply-adds: some 5 microseconds."""


def row_stages(
    first: Kernel,
    left: Mapping[ir.Value, Kernel],
    place: Positions,
    is_ready: Callable[[ir.Value], bool],
    fits: Callable[[Sequence[Kernel]], bool],
) -> list[Kernel]:
    """The kernels that should run together with the first, which is all there is if none should.

    Args:
        first: The kernel that the launch starts with.
        left: Kernels that have no launch, by result.
        place: Where operations stand.
        is_ready: Whether a value is known where the first kernel stands.
        fits: Whether kernels have few enough operands for one launch.
    """
    members = [first]
    cost = first.cost
    refused: set[ir.Value] = set()
    while (found := _next(members, left, refused, place)) is not None:
        refused.add(found.op.results[0])
        together = [*members, found]
        made = {value for member in members for value in member.op.results}
        ready = all(value in made or is_ready(value) for value in found.op.operands)
        if not ready or not fits(together) or not run_along(together):
            continue
        price_together = _cheapest(together)[0]
        if price_together <= cost + found.cost + LAUNCH_WORK * sum(WORKERS):
            members, cost = together, price_together
    if len(members) == 1:
        return members
    _claim(members)
    rows = _cheapest(members)[1]
    count = _count(members)
    return [blocks.of(rows * (blocks.count // count)) for member in members if (blocks := member.rows) is not None]


def _next(
    members: Sequence[Kernel], left: Mapping[ir.Value, Kernel], refused: set[ir.Value], place: Positions
) -> Kernel | None:
    """The first kernel that has not been looked at and reads what a member computes or reads."""
    values = dict.fromkeys(value for kernel in members for value in (*kernel.op.results, *kernel.op.operands))
    results = {user.results[0]: user for value in values for user in users(value) if len(user.results)}
    inside = {kernel.op.results[0] for kernel in members}
    open_ = [result for result in results if result in left and result not in refused and result not in inside]
    return left[min(open_, key=lambda result: place.of(results[result]))] if open_ else None


def run_along(members: Sequence[Kernel]) -> bool:
    """Whether each row of a member needs of the other members nothing but that row; rows of the coarsest member."""
    count = _count(members)
    stages = [member.rows for member in members if member.rows is not None]
    if len(stages) < len(members) or count < 2 or any(stage.count % count for stage in stages):
        return False
    for producer, reader, reads in _pairs(members):
        step = producer.writes(producer.count // count)
        if step is None or not reads or any(read.step(reader.count // count) != step for read in reads):
            return False
    return True


def _count(members: Sequence[Kernel]) -> int:
    """Rows of the coarsest member."""
    return min((member.rows.count for member in members if member.rows is not None), default=0)


def _pairs(members: Sequence[Kernel]) -> Iterator[tuple[RowBlocks, RowBlocks, list[RowRead]]]:
    """Each member that another one reads, that one, and how it reads it."""
    for reader in members:
        arguments = reader.op.regions[0].blocks[0].arguments
        for producer in members:
            value = producer.op.results[0]
            inner = [a for a, operand in zip(arguments, reader.op.operands, strict=True) if operand == value]
            if inner and reader.rows is not None and producer.rows is not None:
                yield producer.rows, reader.rows, [read for read in reader.rows.reads if read.read.value in inner]


def _cheapest(members: Sequence[Kernel]) -> tuple[float, int]:
    """The price of the launch, and how many rows of the coarsest member a workgroup computes."""
    stages = [member.rows for member in members if member.rows is not None]
    count = _count(members)

    def work(rows: int) -> float:
        return sum(stage.work(rows * (stage.count // count)) for stage in stages)

    return min((price(-(-count // rows), work(rows)), rows) for rows in sizes(count))


def _claim(members: Sequence[Kernel]) -> None:
    """Claims that rows are written where they are read."""
    count = _count(members)
    for producer, reader, reads in _pairs(members):
        producer.written.claim(producer.count // count)
        for read in reads:
            read.claim(reader.count // count)
