"""recompute-elementwise: cheap intermediate tensors of a normalisation are computed where they are read.

A layer norm reads `x - mean` twice, for the variance and for the result. As a tensor of its own it is as large as `x`
and lives across a reduction: a code generator that fuses the norm must keep a tile of it in shared memory or on the
stack, and more than a portable target has. Subtracting twice reads exactly what reading the difference would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import Dim, Expr
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.transforms.access_folding import reads_index
from smartmem_mlir.transforms.claims import access_view, claim, is_recorded
from smartmem_mlir.transforms.ir_walk import block_operations, erase_dead, users
from smartmem_mlir.transforms.pass_base import Pass, option
from smartmem_mlir.transforms.structured import (
    Access,
    StructuredOp,
    build_generic_with,
    coordinates_of_dims,
    copy_body,
    element_type,
    is_projection,
    read_structured,
    static_shape,
    unbounded_dims,
)

CHEAP = frozenset(
    {
        "arith.addf",
        "arith.subf",
        "arith.mulf",
        "arith.negf",
        "arith.extf",
        "arith.truncf",
        "arith.maximumf",
        "linalg.yield",
    }
)
"""Operations whose result costs less than the load that it saves."""
INTO_SHADERS = frozenset({"arith.extf", "arith.cmpf", "linalg.yield"})
"""Those whose result is the same number in more bytes, or a truth value: shaders read neither from memory. (A softmax
that PyTorch exports is followed by a test for rows without a finite score.)"""


def recompute_elementwise(root: ir.Operation, conversions: bool = False) -> int:
    """Moves cheap elementwise operations into every user, where that reads no more bytes than before.

    Args:
        root: The module.
        conversions: Whether only extensions to a wider type and comparisons are moved, but those into a single
            elementwise user too.

    Returns:
        How many operations were moved into their users.
    """
    moved = 0
    operations = block_operations(root)
    # By result: the hash of an operation changes with its operands.
    positions = {result: position for position, op in enumerate(operations) for result in op.results}
    for position in range(len(operations)):
        # Read from the list only now: the operation may have been replaced, where it stood, by one that took others in.
        replaced = _move_into_users(operations[position], conversions)
        moved += bool(replaced)
        for old, new in replaced:
            at = positions[old.results[0]]
            operations[at] = new
            positions |= dict.fromkeys(new.results, at)
            old.erase()
    erase_dead(root)
    return moved


def _move_into_users(op: ir.Operation, conversions: bool) -> list[tuple[ir.Operation, ir.Operation]]:
    """Each user of `op` with its replacement, in use already; nothing if `op` is not to be moved."""
    producer = read_structured(op)
    if producer is None or not _is_cheap(producer, INTO_SHADERS if conversions else CHEAP):
        return []
    readers = list(dict.fromkeys(users(op.results[0])))
    consumers = [read_structured(reader) for reader in readers]
    # With one elementwise user the code generator fuses the two as they are.
    if not conversions and len(consumers) == 1 and (consumers[0] is None or consumers[0].is_elementwise):
        return []
    if not all(consumer is not None and _can_take(consumer, op.results[0]) for consumer in consumers):
        return []
    if conversions and not all(consumer is not None and _reads_no_more(producer, consumer) for consumer in consumers):
        return []
    replaced = []
    for reader in readers:
        # Read again: one reader may use another's result, which has just been replaced.
        consumer = read_structured(reader)
        assert consumer is not None
        replaced.append((reader, _inline(producer, consumer)))
    return replaced


def _is_cheap(op: StructuredOp, cheap: frozenset[str]) -> bool:
    """Few such operations, one input as large as the result, the others broadcast: as many reads as of the result."""
    if not op.is_elementwise or len(op.outputs) != 1 or reads_index(op):
        return False
    if any(inner.operation.name not in cheap for inner in op.body.operations) or len(list(op.body.operations)) > 4:
        return False
    if not all(is_projection(access) for access in op.accesses) or _uses_output(op):
        return False
    whole = prod(op.extents)
    # Each element once: a test for nan compares it with itself.
    reads = dict.fromkeys(zip(op.inputs, op.input_accesses, strict=True))
    large = [access for value, access in reads if prod(static_shape(value.type) or ()) == whole]
    if len(large) != 1 or unbounded_dims(large, len(op.extents)):
        return False
    return all(_is_parallel_dim(expr) for expr in op.output_accesses[0])


def _uses_output(op: StructuredOp) -> bool:
    arguments = list(op.body.arguments)[len(op.inputs) :]
    return any(next(iter(argument.uses), None) is not None for argument in arguments)


def _is_parallel_dim(expr: Expr) -> bool:
    return isinstance(expr.single_atom, Dim) or expr.is_constant


def _can_take(consumer: StructuredOp, value: ir.Value) -> bool:
    return not consumer.is_contraction and all(
        is_projection(access)
        for operand, access in zip(consumer.inputs, consumer.input_accesses, strict=True)
        if operand == value
    )


def _reads_no_more(producer: StructuredOp, consumer: StructuredOp) -> bool:
    """Whether reading what the producer reads costs no more than its result: a truth value is smaller than a number."""
    (result,) = producer.op.results
    is_truth = isinstance(element_type(result.type), ir.IntegerType)
    return not is_truth or set(producer.inputs) <= set(consumer.inputs)


def _inline(producer: StructuredOp, consumer: StructuredOp) -> ir.Operation:
    """An operation, used in the consumer's place, that computes the producer's elements itself."""
    produced = producer.op.results[0]
    inputs: list[ir.Value] = []
    accesses: list[Access] = []
    known: dict[object, int] = {}

    def add_input(value: ir.Value, access: Access) -> int:
        """Position of this read among the inputs, each distinct read once."""
        position = known.setdefault((value, access), len(inputs))
        if position == len(inputs):
            inputs.append(value)
            accesses.append(access)
        return position

    # Per consumer input: its position, or the positions of the producer's inputs.
    plan: list[int | list[int]] = []
    for value, access in zip(consumer.inputs, consumer.input_accesses, strict=True):
        if value != produced:
            plan.append(add_input(value, access))
            continue
        inner = [
            expr.substitute(access) for expr in coordinates_of_dims(producer.output_accesses[0], len(producer.extents))
        ]
        reads = [
            simplify_exprs([expr.substitute(inner) for expr in read], Box.of(consumer.extents))
            for read in producer.input_accesses
        ]
        plan.append([add_input(source, read) for source, read in zip(producer.inputs, reads, strict=True)])
        _claim_reads(producer, consumer, access, inner, reads)
    accesses.extend(consumer.output_accesses)

    def body(arguments: Sequence[ir.Value]) -> None:
        elements = []
        for entry in plan:
            if isinstance(entry, int):
                elements.append(arguments[entry])
            else:
                unused = arguments[-1]
                elements.append(copy_body(producer.body, [*(arguments[i] for i in entry), unused], keep_yield=False)[0])
        copy_body(consumer.body, [*elements, *arguments[len(inputs) :]])

    with ir.InsertionPoint(consumer.op), consumer.op.location:
        made = build_generic_with(inputs, consumer.outputs, accesses, consumer.reductions, body)
    for old, new in zip(consumer.op.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    return made.operation


def _claim_reads(
    producer: StructuredOp, consumer: StructuredOp, access: Access, inner: Sequence[Expr], reads: Sequence[Access]
) -> None:
    """Records that the consumer computes, at each of its reads, the element that it read."""
    if not is_recorded():
        return
    produced = static_shape(producer.op.results[0].type) or ()
    entered = access_view(consumer.extents, producer.extents, inner)
    written = access_view(producer.extents, produced, producer.output_accesses[0])
    claim(consumer.op, [entered, written], access_view(consumer.extents, produced, access))
    for value, old, new in zip(producer.inputs, producer.input_accesses, reads, strict=True):
        shape = static_shape(value.type) or ()
        claim(
            consumer.op,
            [entered, access_view(producer.extents, shape, old)],
            access_view(consumer.extents, shape, new),
        )


@dataclass(frozen=True)
class RecomputeElementwise(Pass):
    """Compute cheap intermediate tensors of normalisations where they are read.

    `x - mean` of a layer norm is subtracted in both of its users instead of stored: the same bytes are read, and no
    tile of it has to stay in shared memory while the variance is summed.
    """

    argument: ClassVar[str] = "smartmem-recompute-elementwise"
    example: ClassVar[str] = "layer_norm.mlir"

    conversions: bool = option(
        False, "move only extensions to a wider type, such as that of an f16 model's norms to f32"
    )

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        recompute_elementwise(op, self.conversions)
