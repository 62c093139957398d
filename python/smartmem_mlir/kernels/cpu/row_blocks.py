"""Kernels that compute whole rows: what each row reads and writes, and what a block of rows costs.

If row r of a kernel writes the elements of its result from r*W to (r+1)*W, and row r of another kernel reads of that
result these elements only, then a workgroup can compute a block of rows of the one and go on with the same rows of the
other, whatever the other workgroups do. What is between the two is still in the second-level cache, and a launch is
saved. Rows are matched by index maps alone: a kernel that gathers neighbours of a pixel, or rows of a window from
several lines of an image, fails the test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import Dim, dim
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.kernels.address_claims import Walk, claim_rows_of
from smartmem_mlir.transforms.contraction_group import Read
from smartmem_mlir.transforms.view_ops import shape_of

if TYPE_CHECKING:
    from smartmem_mlir.kernels.cpu.kernel import Kernel


@dataclass(frozen=True)
class RowRead:
    """Elements that a row reads or writes.

    Args:
        walk: The boxes of the kernel's space in which it does; their first dimension counts rows.
        read: What.
    """

    walk: tuple[Walk, ...]
    read: Read

    @cached_property
    def step(self) -> int | None:
        """W if row r stays within the elements from r*W to (r+1)*W; None if there is no such W."""
        found: set[int] = set()
        for walk in self.walk:
            (address,) = simplify_exprs([self.read.address.substitute(walk.group)], Box.of(walk.extents))
            step = address.coefficient(Dim(0))
            if step < 1 or simplify_exprs([address // step], Box.of(walk.extents)) != (dim(0),):
                return None
            found.add(step)
        return found.pop() if len(found) == 1 else None

    def claim(self, op: ir.Operation) -> None:
        """Claims that there is such a W."""
        step = self.step
        assert step is not None, "only rows that are told apart run block by block"
        for walk in self.walk:
            claim_rows_of(op, walk, self.read, step)


@dataclass(frozen=True)
class RowBlocks:
    """A kernel, cut into blocks of rows and no other way.

    Args:
        count: Rows of the kernel.
        tile: Rows that it computes at a time.
        written: Where a row writes.
        reads: Everything that is read.
        work: Of a workgroup of so many rows, in multiply-adds.
        of: The kernel with workgroups of so many rows.
    """

    count: int
    tile: int
    written: RowRead
    reads: tuple[RowRead, ...]
    work: Callable[[int], float]
    of: Callable[[int], Kernel]

    def writes(self) -> int | None:
        """Elements of the result that a row writes; None if rows do not write the result one after the other."""
        step = self.written.step if self.count > 1 else None
        return step if step is not None and step * self.count == prod(shape_of(self.written.read.value)) else None
