"""A sum over pixels as a product with ones, which shaders of contractions compute.

A global average of channels-last images adds rows: neighbours in memory belong to different sums. That is what a
contraction does with its right factor, whole vectors at a time and the sum divided among threads, and multiplying by
one changes nothing. IREE's own shader for the average of 784 x 216 took an H200 63 us.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir
from mlir.dialects import arith, linalg

from smartmem_mlir.index_maps.expr import Dim, dim
from smartmem_mlir.kernels.spirv.kernel import Kernel, contraction_kernel
from smartmem_mlir.kernels.spirv.limits import GpuLimits
from smartmem_mlir.transforms.row_group import combination
from smartmem_mlir.transforms.structured import (
    StructuredOp,
    build_generic_with,
    element_type,
    read_structured,
    tensor_type,
)
from smartmem_mlir.transforms.view_ops import defining_op

_LONGEST = 1 << 16
"""Terms of a sum. Of more, `smartmem-split-sums` makes two sums, which round less."""


def sum_kernel(group: ir.Operation, limits: GpuLimits) -> Kernel | None:
    """A group that begins with a sum over outer dimensions, made a product; None, and unchanged, for others.

    What the sum reads must be a tensor anyway: an elementwise operation before it is part of IREE's shader of the sum.
    """
    block = group.regions[0].blocks[0]
    first = next((read for op in block.operations if (read := read_structured(op.operation)) is not None), None)
    if first is None or not _is_sum_of_rows(first):
        return None
    (value,) = first.inputs
    if value not in list(block.arguments):
        return None
    outside = defining_op(group.operands[ir.BlockArgument(value).arg_number])
    if outside is not None and outside.name.startswith("linalg."):
        return None
    product = _product(first)
    (total,) = first.op.results
    total.replace_all_uses_with(product.results[0])
    summed = first.op.detach_from_parent()
    kernel = contraction_kernel(group, limits)
    if kernel is None:
        ir.InsertionPoint(product).insert(summed)
        product.results[0].replace_all_uses_with(total)
        product.erase()
    return kernel


def _is_sum_of_rows(op: StructuredOp) -> bool:
    """Whether an operation does nothing but add up elements whose neighbours in memory belong to other sums."""
    terms = prod(extent for extent, reduced in zip(op.extents, op.reductions, strict=True) if reduced)
    if op.is_elementwise or len(op.inputs) != 1 or len(op.outputs) != 1 or not 1 < terms <= _LONGEST:
        return False
    atoms = [atom for expr in op.input_accesses[0] if isinstance(atom := expr.single_atom, Dim)]
    if len(set(atoms)) != len(op.extents) or len(atoms) != len(op.input_accesses[0]):
        return False
    last = atoms[-1].index
    if op.reductions[last] or op.extents[last] == 1 or not isinstance(element_type(op.outputs[0].type), ir.F32Type):
        return False
    names = [inner.operation.name for inner in op.body.operations if inner.operation.name != "arith.extf"]
    return names == ["arith.addf", "linalg.yield"] and _adds_input(op)


def _adds_input(op: StructuredOp) -> bool:
    found = combination(op.body, 1, 0)
    return found is not None and found[0] == "arith.addf" and op.argument_number(found[1]) == 0


def _product(op: StructuredOp) -> ir.Operation:
    """The sum as a product with ones, in front of it."""
    (value,), (start,) = op.inputs, op.outputs
    reduced = [d for d, is_reduced in enumerate(op.reductions) if is_reduced]

    def body(arguments: Sequence[ir.Value]) -> None:
        f32 = ir.F32Type.get()
        one, element = (argument if argument.type == f32 else arith.extf(f32, argument) for argument in arguments[:2])
        linalg.yield_([arith.addf(arguments[2], arith.mulf(one, element))])

    with ir.InsertionPoint(op.op), op.op.location:
        type_ = tensor_type([op.extents[d] for d in reduced], value.type)
        splat = ir.DenseElementsAttr.get_splat(type_, ir.FloatAttr.get(type_.element_type, 1.0))
        accesses = [tuple(dim(d) for d in reduced), *op.accesses]
        ones = arith.constant(type_, splat)
        return build_generic_with([ones, value], [start], accesses, op.reductions, body).operation
