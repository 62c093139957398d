"""Kernels that compute whole rows: what each row reads and writes, and what a block of rows costs.

If row r of a kernel writes the elements of its result from r*W to (r+1)*W, and row r of another kernel reads of that
result these elements only, then a workgroup can compute a block of rows of the one and go on with the same rows of the
other, whatever the other workgroups do. What is between the two is still in the second-level cache, and a launch is
saved. Rows are matched by index maps alone: a kernel that gathers neighbours of a pixel, or rows of a window from
several lines of an image, fails the test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
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
        op: The operation that it is about, for claims.
        walk: The boxes of the kernel's space in which it does; their first dimension counts rows.
        read: What.
    """

    op: ir.Operation
    walk: tuple[Walk, ...]
    read: Read
    _steps: dict[int, int | None] = field(default_factory=dict, init=False, repr=False, compare=False)

    def step(self, together: int = 1) -> int | None:
        """W if rows, so many at a time, stay within the elements from r*W to (r+1)*W; None if there is no such W.

        Args:
            together: Rows that count as one.
        """
        if together not in self._steps:
            self._steps[together] = self._step(together)
        return self._steps[together]

    def _step(self, together: int) -> int | None:
        found: set[int] = set()
        for fine in self.walk:
            walk = _coarse(fine, together)
            (address,) = simplify_exprs([self.read.address.substitute(walk.group)], Box.of(walk.extents))
            step = address.coefficient(Dim(0))
            if step < 1 or simplify_exprs([address // step], Box.of(walk.extents)) != (dim(0),):
                return None
            found.add(step)
        return found.pop() if len(found) == 1 else None

    def claim(self, together: int) -> None:
        """Claims that there is such a W."""
        step = self.step(together)
        assert step is not None, "only rows that are told apart run block by block"
        for walk in self.walk:
            claim_rows_of(self.op, _coarse(walk, together), self.read, step)


def _coarse(walk: Walk, together: int) -> Walk:
    """The walk with rows taken together: the first dimension counts the bundles, the last one the rows in a bundle."""
    if together == 1:
        return walk
    rank = len(walk.extents)
    moved = [dim(0) * together + dim(rank), *(dim(i) for i in range(1, rank))]
    kernel, group = ([expr.substitute(moved) for expr in exprs] for exprs in (walk.kernel, walk.group))
    return Walk((walk.extents[0] // together, *walk.extents[1:], together), tuple(kernel), tuple(group), walk.space)


@dataclass(frozen=True)
class RowBlocks:
    """A kernel, cut into blocks of rows and no other way.

    Args:
        count: Rows of the kernel.
        written: Where a row writes.
        reads: Everything that is read.
        work: Of a workgroup of so many rows, in multiply-adds.
        of: The kernel with workgroups of so many rows.
    """

    count: int
    written: RowRead
    reads: tuple[RowRead, ...]
    work: Callable[[int], float]
    of: Callable[[int], Kernel]

    def writes(self, together: int) -> int | None:
        """Elements of the result that so many rows write; None if rows do not write the result one after the other."""
        step = self.written.step(together) if self.count > together else None
        whole = prod(shape_of(self.written.read.value))
        return step if step is not None and step * self.count == whole * together else None
