"""split-sums: a sum over a million elements becomes sums of sums.

A mean over an image of 1024 x 1024 adds a million f32 numbers. One after the other, as a loop over pixels with the
channels in its lanes does, the rounding errors add up to 1e-4 of the result; a thousand sums of a thousand have 1e-6.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, linalg, tensor

from smartmem_mlir.index_maps.expr import ZERO, Expr, dim, dims
from smartmem_mlir.transforms.ir_walk import block_operations, erase_dead
from smartmem_mlir.transforms.pass_base import Pass, option
from smartmem_mlir.transforms.row_group import combination
from smartmem_mlir.transforms.structured import (
    StructuredOp,
    build_generic,
    build_generic_with,
    element_type,
    read_structured,
)


def split_sums(root: ir.Operation, longest: int) -> int:
    """Splits every sum of f32 numbers over several dimensions that has more terms than `longest`.

    Returns:
        How many were split.
    """
    count = 0
    for op in block_operations(root):
        structured = read_structured(op)
        if structured is not None and _is_long(structured, longest):
            _split(structured)
            count += 1
    erase_dead(root)
    return count


def _is_long(op: StructuredOp, longest: int) -> bool:
    reduced = [extent for extent, is_reduced in zip(op.extents, op.reductions, strict=True) if is_reduced]
    if len(reduced) < 2 or prod(reduced) <= longest or len(op.outputs) != 1 or op.is_contraction:
        return False
    if not isinstance(element_type(op.outputs[0].type), ir.F32Type):
        return False
    found = combination(op.body, len(op.inputs), 0)
    return found is not None and found[0] == "arith.addf"


def _split(op: StructuredOp) -> None:
    """Sums along the last dimension that is reduced, then along the others."""
    last = max(d for d, is_reduced in enumerate(op.reductions) if is_reduced)
    kept = [d for d in range(len(op.extents)) if d != last]
    number: list[Expr] = [ZERO] * len(op.extents)
    for i, d in enumerate(kept):
        number[d] = dim(i)
    with ir.InsertionPoint(op.op), op.op.location:
        f32 = element_type(op.outputs[0].type)
        empty = tensor.empty([op.extents[d] for d in kept], f32)
        start = linalg.fill(arith.constant(f32, 0.0), outs=[empty])
        partial = build_generic(
            op.inputs,
            [start],
            [*op.input_accesses, tuple(dim(d) for d in kept)],
            [d == last for d in range(len(op.extents))],
            op.body,
        )
        total = build_generic_with(
            [partial.results[0]],
            [op.outputs[0]],
            [dims(len(kept)), tuple(expr.substitute(number) for expr in op.output_accesses[0])],
            [op.reductions[d] for d in kept],
            lambda elements: linalg.yield_([arith.addf(elements[0], elements[1])]),
        )
    op.op.results[0].replace_all_uses_with(total.results[0])
    op.op.erase()


@dataclass(frozen=True)
class SplitSums(Pass):
    """Split sums of many terms over several dimensions into sums of sums, which round less.

    For what no generator of kernels took: IREE adds the terms of each element one after the other. Changes rounding,
    towards the exact sum.
    """

    argument: ClassVar[str] = "smartmem-split-sums"
    dependent_dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "tensor")
    example: ClassVar[str] = "mean_of_pixels.mlir"

    longest: int = option(1 << 16, "terms of a sum that stays whole")

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        split_sums(op, self.longest)
