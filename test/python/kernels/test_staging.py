"""Which box of a factor a block of rows reads."""

from __future__ import annotations

import itertools

import pytest

from smartmem_mlir.index_maps.expr import Expr, dim
from smartmem_mlir.kernels.addresses import Tiling
from smartmem_mlir.kernels.cpu.staging import Windows, windows
from smartmem_mlir.transforms.contraction_group import Read

OUT, LINES, COLUMNS, CHANNELS, TAPS = 8, 6, 10, 2, 3
TILING = Tiling((OUT, LINES, COLUMNS, CHANNELS, TAPS, TAPS), (1, 2), (), 0, (3, 4, 5), OUT)
PADDED = (CHANNELS, 2 * LINES + 1, 2 * COLUMNS + 1)
ACCESS = (dim(3), dim(1) * 2 + dim(4), dim(2) * 2 + dim(5))


def found(rows: int, access: tuple[Expr, ...] = ACCESS) -> Windows | None:
    # The tensor itself is not looked at.
    return windows(Read(None, access), TILING, rows)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "shape"),
    [
        (1, (CHANNELS, 3, 3)),
        (5, (CHANNELS, 3, 11)),
        (10, (CHANNELS, 3, 21)),
        (30, (CHANNELS, 7, 21)),
        (60, (CHANNELS, 13, 21)),
    ],
)
def test_every_element_is_in_its_window(rows: int, shape: tuple[int, ...]) -> None:
    window = found(rows)
    assert window is not None
    assert window.shape == shape
    for line, column, channel, y, x in itertools.product(*map(range, (LINES, COLUMNS, CHANNELS, TAPS, TAPS))):
        at = [Expr(value) for value in (0, line, column, channel, y, x)]
        block = [Expr((line * COLUMNS + column) // rows)]
        inside = [expr.substitute(at).const for expr in window.access]
        assert all(0 <= i < extent for i, extent in zip(inside, shape, strict=True))
        placed = [first.substitute(block).const + i for first, i in zip(window.first, inside, strict=True)]
        assert placed == [expr.substitute(at).const for expr in ACCESS]


@pytest.mark.parametrize("rows", [4, 15, 40])
def test_blocks_that_are_no_boxes_have_no_window(rows: int) -> None:
    assert found(rows) is None


def test_what_moves_unevenly_has_no_window() -> None:
    assert found(10, (dim(3), dim(1) // 2 + dim(4), dim(2) + dim(5))) is None
