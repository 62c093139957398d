"""Groups, whoever generates their kernels: what they are given, their names, and how they are dissolved."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mlir import ir

from smartmem_mlir.transforms.attention_group import AttentionGroup, read_attention_group
from smartmem_mlir.transforms.contraction_group import (
    ContractionGroup,
    Read,
    is_bordered,
    read_contraction_group,
)
from smartmem_mlir.transforms.contraction_growth import is_contraction
from smartmem_mlir.transforms.ir_walk import CONSTANTS
from smartmem_mlir.transforms.linear_attention_group import LinearAttentionGroup, read_linear_attention_group
from smartmem_mlir.transforms.map_group import read_map_group
from smartmem_mlir.transforms.outline import clone_into
from smartmem_mlir.transforms.row_group import RowGroup, read_row_group
from smartmem_mlir.transforms.structured import is_structured
from smartmem_mlir.transforms.view_ops import splat_constant

GROUP = "smartmem.group"


def is_f32(type_: ir.Type) -> bool:
    """Whether a type is a tensor of f32."""
    return isinstance(type_, ir.RankedTensorType) and isinstance(type_.element_type, ir.F32Type)


def is_f16(type_: ir.Type) -> bool:
    """Whether a type is a tensor of f16."""
    return isinstance(type_, ir.RankedTensorType) and isinstance(type_.element_type, ir.F16Type)


def computes_halves(op: ir.Operation) -> bool:
    """Whether a group has a value of f16, given, made, or in between."""
    inner = [result for member in op.regions[0].blocks[0].operations for result in member.operation.results]
    return any(is_f16(value.type) for value in (*op.operands, *op.results, *inner))


def parameter(op: ir.Operation, read: Read) -> ir.Value | None:
    """The weight that is read, None when it is no weight."""
    if not isinstance(read.value.owner, ir.Block):
        return None
    operand = op.operands[ir.BlockArgument(read.value).arg_number]
    owner = operand.owner
    return operand if not isinstance(owner, ir.Block) and owner.operation.name in CONSTANTS else None


def is_argument(value: ir.Value) -> bool:
    """Whether a value of a group's body is given to the group."""
    return isinstance(value.owner, ir.Block)


def without_operands(op: ir.Operation) -> str:
    """A group's text without its operands, and with values named in order: the same for groups that are equal."""
    # Without this option MLIR names every value of the function before it prints one group of it.
    text = op.get_asm(use_local_scope=True, assume_verified=True)
    names: dict[str, str] = {}
    return re.sub(r"%\w+", lambda name: names.setdefault(name[0], f"%{len(names)}"), text[text.index(") : (") :])


def dissolve(op: ir.Operation) -> None:
    """Puts the operations of a group back where the group stands."""
    block = op.regions[0].blocks[0]
    mapping: dict[ir.Value, ir.Value] = dict(zip(block.arguments, op.operands, strict=True))
    with ir.InsertionPoint(op):
        for inner in block.operations:
            if inner.operation.name == "smartmem.yield":
                results = [mapping[value] for value in inner.operation.operands]
                break
            clone_into(inner.operation, mapping)
    for old, new in zip(op.results, results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


def read_attention(op: ir.Operation) -> AttentionGroup | None:
    """What a `smartmem.group` computes; None when it is no attention."""
    members = [inner.operation for inner in op.regions[0].blocks[0].operations]
    return read_attention_group([m for m in members if is_structured(m) or m.name == "linalg.softmax"])


def read_linear_attention(op: ir.Operation) -> LinearAttentionGroup | None:
    """What a `smartmem.group` computes; None when it is no attention without a softmax."""
    members = [inner.operation for inner in op.regions[0].blocks[0].operations if is_structured(inner.operation)]
    first = next((i for i, inner in enumerate(members) if is_contraction(inner)), None)
    if first is None:
        return None
    # Before the second contraction stands what is computed of its other factor as that is read.
    second = next((i for i in range(first + 1, len(members)) if is_contraction(members[i])), len(members))
    return read_linear_attention_group([members[first], *members[second:]])


def read_contraction(op: ir.Operation) -> ContractionGroup | None:
    """What a `smartmem.group` computes; None when it is no contraction."""
    kept = _kept(op)
    # Before the contraction stands what scales a factor of it.
    first = next((i for i, inner in enumerate(kept) if is_contraction(inner)), None)
    return None if first is None else read_contraction_group(kept[first:])


def read_rows(op: ir.Operation) -> RowGroup | None:
    """What a `smartmem.group` computes; None when it is no computation over rows."""
    kept = _kept(op)
    return read_row_group(kept) if kept else None


def read_map(op: ir.Operation) -> RowGroup | None:
    """What a `smartmem.group` of elementwise operations computes; None when it is of another kind."""
    kept = _kept(op)
    return read_map_group(kept) if kept else None


def _kept(op: ir.Operation) -> list[ir.Operation]:
    members = [inner.operation for inner in op.regions[0].blocks[0].operations]
    return [inner for inner in members if is_structured(inner) or is_bordered(inner)]


def arguments_of(reads: Iterable[Read]) -> list[ir.Value]:
    """What is read of what the group is given, each once."""
    return list(dict.fromkeys(read.value for read in reads if is_argument(read.value)))


def operands_of(op: ir.Operation, arguments: Iterable[ir.Value]) -> list[ir.Value]:
    """What a group is given for arguments of its body."""
    return [op.operands[ir.BlockArgument(argument).arg_number] for argument in arguments]


def reads_after_sum(group: ContractionGroup) -> list[Read]:
    """What is read from memory once for each element of the result."""
    reads = [argument for step in group.steps for argument in step.arguments if isinstance(argument, Read)]
    if isinstance(group.initial, Read):
        reads = [group.initial, *reads]
    return [read for read in reads if splat_constant(read.value) is None]
