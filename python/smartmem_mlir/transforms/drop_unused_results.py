"""drop-unused-results: a structured operation computes only what is read of it.

A maximum is often imported with the position where it was found, which a softmax does not read. With it the operation
is no plain reduction, and no group takes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import linalg

from smartmem_mlir.transforms.ir_walk import block_operations, erase_dead
from smartmem_mlir.transforms.pass_base import Pass
from smartmem_mlir.transforms.structured import StructuredOp, build_generic_with, copy_operation, read_structured


def drop_unused_results(root: ir.Operation) -> int:
    """Replaces operations by ones without the results that nobody reads.

    Returns:
        How many results were dropped.
    """
    dropped = 0
    for op in block_operations(root):
        structured = read_structured(op) if op.name == "linalg.generic" and len(op.results) > 1 else None
        kept = [number for number, result in enumerate(op.results) if next(iter(result.uses), None) is not None]
        if structured is None or not kept or len(kept) == len(op.results):
            continue
        needed = _needed(structured, kept)
        if needed is None:
            continue
        dropped += len(op.results) - len(kept)
        _replace(structured, kept, needed)
    erase_dead(root)
    return dropped


def _needed(op: StructuredOp, kept: Sequence[int]) -> list[ir.Operation] | None:
    """The operations of the body that the kept results need, in order; None if they read what is to be dropped."""
    operations = [inner.operation for inner in op.body.operations]
    pending = [operations[-1].operands[number] for number in kept]
    seen = set(pending)
    while pending:
        value = pending.pop()
        if isinstance(value.owner, ir.Block):
            continue
        for operand in value.owner.operation.operands:
            if operand not in seen:
                seen.add(operand)
                pending.append(operand)
    accumulators = list(op.body.arguments)[len(op.inputs) :]
    if any(accumulator in seen and number not in kept for number, accumulator in enumerate(accumulators)):
        return None
    return [inner for inner in operations[:-1] if any(result in seen for result in inner.results)]


def _replace(op: StructuredOp, kept: Sequence[int], needed: Sequence[ir.Operation]) -> None:
    accesses = (*op.input_accesses, *(op.output_accesses[number] for number in kept))
    arguments = list(op.body.arguments)
    known = [*arguments[: len(op.inputs)], *(arguments[len(op.inputs) + number] for number in kept)]
    yielded = list(op.body.operations)[-1].operation.operands

    def body(elements: Sequence[ir.Value]) -> None:
        mapping = dict(zip(known, elements, strict=True))
        for inner in needed:
            copy_operation(inner, mapping)
        linalg.YieldOp([mapping.get(yielded[number], yielded[number]) for number in kept])

    with ir.InsertionPoint(op.op), op.op.location:
        made = build_generic_with(op.inputs, [op.outputs[number] for number in kept], accesses, op.reductions, body)
    for number, result in zip(kept, made.results, strict=True):
        op.op.results[number].replace_all_uses_with(result)
    op.op.erase()


@dataclass(frozen=True)
class DropUnusedResults(Pass):
    """Drop results of structured operations that nobody reads.

    An imported softmax takes its maximum together with the position where it was found, and reads the maximum alone.
    Without the position the operation is a reduction like others, which groups take. A result stays if another is
    computed from it.
    """

    argument: ClassVar[str] = "smartmem-drop-unused-results"
    example: ClassVar[str] = "maximum_and_position.mlir"

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        drop_unused_results(op)
