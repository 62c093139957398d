"""Borders that a kernel writes around its result."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod

from mlir import ir
from mlir.dialects import arith, scf

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.kernels.cpu.lanes import Part, add, index, loop, scaled, splat, store


def write_borders(
    memory: ir.Value, shape: Sequence[int], border: Sequence[tuple[Box, float]], lanes: int, ids: Sequence[ir.Value]
) -> None:
    """Writes constants around what a kernel computes; little against that, so that one workgroup writes all of them.

    Args:
        memory: Of the result, as a one-dimensional memref.
        shape: Of the result.
        border: Boxes of it with the number that fills each.
        lanes: Elements of a vector.
        ids: Indices of the workgroup; the first one writes.
    """
    if not border:
        return
    is_first = arith.cmpi(arith.CmpIPredicate.eq, reduce(arith.ori, ids), index(0))
    branch = scf.IfOp(is_first)
    with ir.InsertionPoint(branch.then_block):
        for box, value in border:
            _fill(memory, shape, box, splat(float(value), lanes), lanes)
        scf.YieldOp([])


def _fill(memory: ir.Value, shape: Sequence[int], box: Box, value: ir.Value, lanes: int) -> None:
    # Trailing dimensions that the box fills are contiguous with the one before them.
    inner = len(shape) - 1
    while inner > 0 and box.extents[inner] == shape[inner]:
        inner -= 1
    run = prod(box.extents[inner:])
    start = sum(box.lo[axis] * prod(shape[axis + 1 :]) for axis in range(inner, len(shape)))

    def runs(axis: int, at: ir.Value) -> None:
        """The axes before the inner one are loops; `at` is what the outer ones add up to."""
        if axis < inner:

            def step(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                runs(axis + 1, arith.addi(at, scaled(i, prod(shape[axis + 1 :]))))
                return []

            loop(index(box.lo[axis]), index(box.hi[axis]), 1, [], step)
            return
        whole = run // lanes * lanes

        def vectors(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            store(value, memory, arith.addi(at, i), Part(0, lanes, lanes))
            return []

        if whole:
            loop(index(0), index(whole), lanes, [], vectors)
        if run > whole:
            store(value, memory, add(at, whole), Part(0, lanes, run - whole))

    runs(0, index(start))
