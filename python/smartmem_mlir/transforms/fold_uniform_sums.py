"""fold-uniform-sums: a reduction of one number is a multiple of it, or the number itself.

IREE 3.13 forgets how often such a number is summed: of windows over a tensor of -0.5 it makes -0.5, whatever the size
of a window. So these sums must not come to it. They are where an exporter counts the elements of the windows of a pool,
or where a window lies inside a border.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, linalg, tensor

from smartmem_mlir.index_maps.view import Fill, Piece
from smartmem_mlir.transforms.ir_walk import block_operations, erase_dead
from smartmem_mlir.transforms.outline import clone_into
from smartmem_mlir.transforms.pass_base import Pass
from smartmem_mlir.transforms.row_group import combination
from smartmem_mlir.transforms.structured import StructuredOp, argument_number, element_type, read_structured
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view, shape_of, splat_constant

_SUM = "arith.addf"
_RESHAPES = ("tensor.expand_shape", "tensor.collapse_shape", "tensor.extract_slice", "tensor.cast")
_IDEMPOTENT = ("arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf")


def fold_uniform_sums(root: ir.Operation) -> int:
    """Replaces every reduction of f32 numbers that reads only constants of one value each.

    Returns:
        How many were replaced.
    """
    count = 0
    for op in block_operations(root):
        structured = read_structured(op)
        if structured is not None and any(structured.reductions) and _fold(structured):
            count += 1
    erase_dead(root)
    return count


def _fold(op: StructuredOp) -> bool:
    if len(op.outputs) != 1 or not isinstance(element_type(op.outputs[0].type), ir.F32Type):
        return False
    found = combination(op.body, len(op.inputs), 0)
    initial = splat_constant(op.outputs[0])
    if found is None or initial is None or found[0] not in (_SUM, *_IDEMPOTENT):
        return False
    name, element = found
    members = _members(op, element)
    if members is None:
        return False
    times = prod(extent for extent, reduced in zip(op.extents, op.reductions, strict=True) if reduced)
    result = op.op.results[0]
    with ir.InsertionPoint(op.op), op.op.location:
        f32 = ir.F32Type.get()
        mapping: dict[ir.Value, ir.Value] = {}
        for number, value in enumerate(op.inputs):
            constant = _number(value)
            if constant is not None:
                mapping[op.body.arguments[number]] = arith.constant(element_type(value.type), constant)
        for member in members:
            clone_into(member, mapping)
        value = mapping.get(element, element)
        if name == _SUM:
            value = arith.mulf(value, arith.constant(f32, float(times)))
        start = arith.constant(f32, initial)
        total = ir.Operation.create(name, [f32], [start, value]).results[0]
        filled = linalg.fill(total, outs=[tensor.empty(list(shape_of(result)), f32)])
    result.replace_all_uses_with(filled)
    op.op.erase()
    return True


def _number(value: ir.Value) -> float | None:
    """The number that all elements of a tensor of floating-point numbers are."""
    if not isinstance(element_type(value.type), ir.F32Type | ir.F16Type):
        return None
    constant, op = splat_constant(value), defining_op(value)
    if constant is not None or op is None:
        return constant
    if op.name in _RESHAPES:
        return _number(op.operands[0])
    if is_view(op):
        view = read_view(op)
        found = {_of_piece(piece, op.operands) for piece in view.pieces}
    else:
        structured = read_structured(op)
        if structured is None or not structured.is_elementwise or len(structured.outputs) != 1:
            return None
        found = {_yielded(structured)}
    return found.pop() if len(found) == 1 else None


def _of_piece(piece: Piece, operands: Sequence[ir.Value]) -> float | None:
    return float(piece.source.value) if isinstance(piece.source, Fill) else _number(operands[piece.source])


def _yielded(op: StructuredOp) -> float | None:
    """The number that an elementwise operation yields everywhere: a constant, or one read from a tensor of one."""
    (value,) = list(op.body.operations)[-1].operands
    number = argument_number(value, op.body)
    if number is not None:
        return _number(op.inputs[number]) if number < len(op.inputs) else None
    inner = defining_op(value)
    if inner is not None and inner.name == "tensor.extract":
        return _number(inner.operands[0])
    return splat_constant(value)


def _members(op: StructuredOp, element: ir.Value) -> list[ir.Operation] | None:
    """Operations of the body that an element is computed by, in program order; None if it differs between elements."""
    needed: set[ir.Value] = set()
    pending = [element]
    while pending:
        value = pending.pop()
        if isinstance(value.owner, ir.Block):
            number = argument_number(value, op.body)
            # What is outside of the body may vary from call to call, but not from element to element.
            if number is not None and (number >= len(op.inputs) or _number(op.inputs[number]) is None):
                return None
            continue
        inner = value.owner.operation
        if inner.block != op.body:
            continue
        if not inner.name.startswith(("arith.", "math.")):
            return None
        needed.add(value)
        pending.extend(inner.operands)
    return [inner.operation for inner in op.body.operations if any(r in needed for r in inner.operation.results)]


@dataclass(frozen=True)
class FoldUniformSums(Pass):
    """Compute sums and maxima whose operands are one number each.

    A reduction that reads only constants of one value becomes a constant: so many times the number for a sum, the
    number for a maximum or minimum. IREE's own folding of them forgets how often a number is summed.
    """

    argument: ClassVar[str] = "smartmem-fold-uniform-sums"
    dependent_dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "tensor")
    example: ClassVar[str] = "windows_of_a_constant.mlir"

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        fold_uniform_sums(op)
