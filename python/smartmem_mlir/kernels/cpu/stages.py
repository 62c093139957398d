"""Kernels that one workgroup runs one after the other on the same rows: the stages of a launch.

A feed-forward network is a product, another one, a residual addition and the next normalisation; each row of each is
computed from the same row of the one before. Whether that is so is read from the index maps (`row_blocks.py`). Whether
it pays is a matter of cost: a workgroup reads the weights of all stages, and all panels of a row are its own, so that
few rows of long products keep fewer workers busy than separate kernels would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import lcm

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
        if not fits(together) or not follows(found, members, is_ready):
            continue
        price_together = _cheapest(together)[0]
        if price_together <= cost + found.cost + LAUNCH_WORK * sum(WORKERS):
            members, cost = together, price_together
    if len(members) == 1:
        return members
    _claim(members)
    rows = _cheapest(members)[1]
    return [blocks.of(rows) for member in members if (blocks := member.rows) is not None]


def _next(
    members: Sequence[Kernel], left: Mapping[ir.Value, Kernel], refused: set[ir.Value], place: Positions
) -> Kernel | None:
    """The first kernel that has not been looked at and reads what a member computes or reads."""
    values = dict.fromkeys(value for kernel in members for value in (*kernel.op.results, *kernel.op.operands))
    results = {user.results[0]: user for value in values for user in users(value) if len(user.results)}
    inside = {kernel.op.results[0] for kernel in members}
    open_ = [result for result in results if result in left and result not in refused and result not in inside]
    return left[min(open_, key=lambda result: place.of(results[result]))] if open_ else None


def follows(kernel: Kernel, members: Sequence[Kernel], is_ready: Callable[[ir.Value], bool]) -> bool:
    """Whether each row of a kernel needs nothing but that row of the members, and what is known before them."""
    blocks = kernel.rows
    if blocks is None or any(member.rows is None or member.rows.count != blocks.count for member in members):
        return False
    made = {member.op.results[0]: member.rows for member in members}
    return all(is_ready(value) for value in kernel.op.operands if value not in made) and all(
        _same_rows(blocks, kernel.op, value, producer)
        for value, producer in made.items()
        if producer is not None and value in list(kernel.op.operands)
    )


def _same_rows(reader: RowBlocks, op: ir.Operation, value: ir.Value, producer: RowBlocks) -> bool:
    step = producer.writes()
    reads = _reads(reader, op, value)
    return step is not None and bool(reads) and all(read.step == step for read in reads)


def _reads(blocks: RowBlocks, op: ir.Operation, value: ir.Value) -> list[RowRead]:
    """How a group reads one of its operands."""
    arguments = op.regions[0].blocks[0].arguments
    inner = [argument for argument, operand in zip(arguments, op.operands, strict=True) if operand == value]
    return [read for read in blocks.reads if read.read.value in inner]


def _cheapest(members: Sequence[Kernel]) -> tuple[float, int]:
    """The price of the launch, and how many rows a workgroup computes."""
    stages = [member.rows for member in members if member.rows is not None]
    count = stages[0].count
    # Whole tiles of one stage or of all.
    tiles = {stage.tile for stage in stages}
    blocks = {min(count, tile * n) for tile in (*tiles, lcm(*tiles)) for n in sizes(-(-count // tile))}
    return min((price(-(-count // rows), sum(stage.work(rows) for stage in stages)), rows) for rows in blocks)


def _claim(members: Sequence[Kernel]) -> None:
    """Claims that rows are written where they are read."""
    for member in members:
        for producer in members:
            value = producer.op.results[0]
            if member.rows is None or producer.rows is None or value not in list(member.op.operands):
                continue
            producer.rows.written.claim(producer.op)
            for read in _reads(member.rows, member.op, value):
                read.claim(member.op)
