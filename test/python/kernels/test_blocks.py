"""Blocks of workgroups: covered, even for any number of workers, and no smaller than starting them is worth."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from smartmem_mlir.index_maps.expr import Expr, dim
from smartmem_mlir.kernels.addresses import FIRST_REDUCTION, ROW, SplitAddress
from smartmem_mlir.kernels.cpu.blocks import START_WORK, busiest, choose_blocks, price
from smartmem_mlir.kernels.cpu.plan import MOST_ROWS, rows_in_cache


@pytest.mark.parametrize(
    ("workgroups", "workers", "expected"),
    [(8, 2, 4), (9, 2, 5), (15, 2, 8), (16, 2, 8), (24, 2, 16), (24, 4, 6), (1, 8, 1), (63, 8, 8), (64, 8, 8)],
)
def test_the_busiest_worker(workgroups: int, workers: int, expected: int) -> None:
    assert busiest(workgroups, workers) == expected


@given(st.integers(1, 2000), st.integers(1, 200), st.integers(1, 10_000_000))
def test_workers_share_large_work_evenly(rows: int, panels: int, work: int) -> None:
    row_block, panel_block = choose_blocks((rows, panels), lambda r, p: float(r * p * work))
    assert 1 <= row_block <= rows
    assert 1 <= panel_block <= panels
    workgroups = -(-rows // row_block) * -(-panels // panel_block)
    # Alone, a worker does everything and starts every workgroup: never much more than all of it in one.
    alone = workgroups * (row_block * panel_block * work + START_WORK)
    assert alone <= 2.5 * (rows * panels * work + START_WORK)
    # Fewer units, 17 x 17 for instance, may not divide better: of those the test below tries every choice.
    if rows * panels * work > 400 * START_WORK and rows * panels >= 512:
        for workers in (2, 4, 8):
            share = busiest(workgroups, workers) * row_block * panel_block
            assert share <= 1.25 * rows * panels / workers + 1


@given(st.integers(1, 24), st.integers(1, 24), st.integers(1, 10_000_000))
@example(17, 17, 83045)
def test_no_choice_is_much_cheaper(rows: int, panels: int, work: int) -> None:
    def cost(row_block: int, panel_block: int) -> float:
        return price(-(-rows // row_block) * -(-panels // panel_block), float(row_block * panel_block * work))

    chosen = cost(*choose_blocks((rows, panels), lambda r, p: float(r * p * work)))
    assert chosen <= 1.02 * min(cost(r, p) for r in range(1, rows + 1) for p in range(1, panels + 1))


def test_little_work_is_not_cut() -> None:
    assert choose_blocks((100, 1), lambda rows, _: rows * 10.0) == (100, 1)


def test_what_a_workgroup_reads_counts() -> None:
    """Rows that each workgroup must lay its panel out for are not cut where panels can be."""
    row_block, _ = choose_blocks((64, 64), lambda rows, panels: panels * (rows + 1000) * 1e5)
    assert row_block == 64


@pytest.mark.parametrize(
    ("stride", "rows"),
    [(1024, 7), (2048, 7), (3072, 7), (1025, 7), (1020, 14), (512, 14), (1536, 14), (256, 14), (1, 14), (3, 14)],
)
def test_rows_that_share_a_set_of_the_cache_are_few(stride: int, rows: int) -> None:
    """Elements of a column, a stride of f32 apart, are in at most seven lines of each of 64 sets."""
    assert rows_in_cache(SplitAddress(dim(ROW) * stride, dim(FIRST_REDUCTION), 0)) == rows
    lines = {4 * stride * row // 64 for row in range(rows)}
    assert max(Counter(line % 64 for line in lines).values()) <= 7


def test_rows_at_no_one_stride_are_not_limited() -> None:
    lhs = SplitAddress(dim(ROW) // 7 * 8192 + dim(ROW) % 7, Expr(0), 0)
    assert rows_in_cache(lhs) == MOST_ROWS
