"""pin-epilogues: what several operations read is computed where it is made, in its contraction's kernel.

A residual sum is read twice by the layer norm after it and once more by the next addition. IREE puts it into the first
of these readers, whose kernel then has to keep a tile of whole rows until the mean is known: 192 KiB for 768 channels,
where a portable device has 16. As the epilogue of the projection in front of it, it costs no memory and no kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import ClassVar

from mlir import ir

from smartmem_mlir.transforms.ir_walk import block_operations, erase_dead, has_one_use, users
from smartmem_mlir.transforms.outline import outline
from smartmem_mlir.transforms.pass_base import Pass
from smartmem_mlir.transforms.structured import read_structured
from smartmem_mlir.transforms.view_ops import defining_op

_RESHAPES = frozenset({"tensor.expand_shape", "tensor.collapse_shape"})
MAX_LOOKBACK = 32
"""Operations looked at in front of one; a normalisation has about ten."""


def pin_epilogues(root: ir.Operation) -> int:
    """Groups elementwise results that a reduction and others read with the chain of operations that leads to them.

    Returns:
        How many groups were made.
    """
    pinned = 0
    for op in block_operations(root):
        if not (_is_elementwise(op) or _is_contraction(op)) or len(op.results) != 1:
            continue
        if not _is_shared(op.results[0]) or not _feeds_reduction(op.results[0]):
            continue
        members = _chain(op)
        if any(map(_is_contraction, members)):
            # A reshape inside a region keeps IREE from distributing it to threads.
            if any(_is_scattered(each) or each.name in _RESHAPES for each in members):
                continue
        else:
            if not _has_rows(op) or _reductions_before(op) == 1:
                continue
            members = _made_for(op)
        _pin(members)
        pinned += 1
    erase_dead(root)
    return pinned


def _is_elementwise(op: ir.Operation) -> bool:
    structured = read_structured(op)
    return structured is not None and structured.is_elementwise and len(structured.outputs) == 1


def _is_contraction(op: ir.Operation) -> bool:
    """Whether the operation sums products; convolutions keep their names until code is generated."""
    structured = read_structured(op)
    return "conv_" in op.name or (structured is not None and structured.is_contraction)


def _is_shared(value: ir.Value) -> bool:
    """Whether several operations read the value, in whatever shape."""
    readers = list(dict.fromkeys(users(value)))
    return len(readers) > 1 or (
        len(readers) == 1 and readers[0].name in _RESHAPES and _is_shared(readers[0].results[0])
    )


def _is_reduction(op: ir.Operation) -> bool:
    structured = read_structured(op)
    return structured is not None and not structured.is_elementwise and not structured.is_contraction


def _feeds_reduction(value: ir.Value) -> bool:
    """Whether a sum or maximum is taken of the value's elements."""
    return any(
        _feeds_reduction(user.results[0]) if user.name in _RESHAPES else _is_reduction(user) for user in users(value)
    )


def _is_scattered(op: ir.Operation) -> bool:
    """Whether the body reads a tensor at an innermost position that is computed: code generators find no vector there,
    and IREE's for SPIR-V fails on it next to a contraction."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name == "tensor.extract":
                    innermost = defining_op(list(inner.operation.operands)[-1])
                    if innermost is None or innermost.name not in ("linalg.index", "arith.constant"):
                        return True
    return False


def _has_rows(op: ir.Operation) -> bool:
    """Whether the result is more than one row: a row alone is reduced by itself."""
    return len(op.results[0].type.shape) > 1


def _reductions_before(op: ir.Operation) -> int:
    """How many reductions, one after another, the operation's inputs went through since the last contraction.

    One: the operation is in the midst of a normalisation (the exponentials of a softmax, the differences from a mean),
    which a group would cut in two. Two: it is the result of one.
    """
    known: dict[ir.Value, int] = {}

    def count(value: ir.Value, patience: int) -> int:
        made = defining_op(value)
        if made is None or patience == 0 or _is_contraction(made):
            return 0
        if value not in known:
            known[value] = 0
            if _is_reduction(made) or _may_lead(made):
                before = max((count(each, patience - 1) for each in _read(made)), default=0)
                known[value] = before + _is_reduction(made)
        return known[value]

    return max((count(value, MAX_LOOKBACK) for value in _read(op)), default=0)


def _chain(op: ir.Operation) -> list[ir.Operation]:
    """The operations that lead to `op`, each read by the next alone, in order; as far as a contraction."""
    chain = [op]
    while not _is_contraction(chain[0]):
        made = [defining_op(value) for value in _read(chain[0]) if has_one_use(value)]
        usable = [each for each in made if each is not None and each.block == op.block and _may_lead(each)]
        # A contraction before anything else: its epilogue is what this is for.
        found = next((each for each in usable if _leads_to_contraction(each)), None)
        if found is None:
            break
        chain.insert(0, found)
    # A bias that the sums start from is broadcast inside the kernel.
    start = defining_op(list(chain[0].operands)[-1]) if _is_contraction(chain[0]) else None
    if start is not None and _is_elementwise(start) and has_one_use(start.results[0]) and start.block == op.block:
        chain.insert(0, start)
    return chain


def _made_for(op: ir.Operation) -> list[ir.Operation]:
    """The operation and all that is computed for it alone, in order: embeddings that it adds up, a mean, a variance."""
    members = [op]
    pending = [op]
    while pending:
        for value in _read(pending.pop()):
            made = defining_op(value)
            if made is None or made in members or made.block != op.block or len(members) > MAX_LOOKBACK:
                continue
            if not (_is_elementwise(made) or _is_reduction(made) or made.name in _RESHAPES) or len(made.results) != 1:
                continue
            # Asked again when the last of its readers has joined.
            if all(user in members for user in users(made.results[0])):
                members.append(made)
                pending.append(made)
    return sorted(members, key=cmp_to_key(_program_order))


def _program_order(a: ir.Operation, b: ir.Operation) -> int:
    return -1 if a.is_before_in_block(b) else 1


def _read(op: ir.Operation) -> Sequence[ir.Value]:
    structured = read_structured(op)
    return list(op.operands)[:1] if structured is None else structured.inputs


def _may_lead(op: ir.Operation) -> bool:
    return op.name in _RESHAPES or _is_elementwise(op) or _is_contraction(op)


def _leads_to_contraction(op: ir.Operation) -> bool:
    """Whether a contraction is behind elementwise operations and reshapes with one reader each."""
    if _is_contraction(op):
        return True
    made = (defining_op(value) for value in _read(op) if has_one_use(value))
    return any(each is not None and _may_lead(each) and _leads_to_contraction(each) for each in made)


def _pin(members: Sequence[ir.Operation]) -> None:
    """Puts the operations, of which the last has the result, into a group in its place."""
    last = members[-1]
    group = outline(members, last.results[0])
    last.results[0].replace_all_uses_with(group.results[0])
    for op in reversed(members):
        op.erase()


@dataclass(frozen=True)
class PinEpilogues(Pass):
    """Compute what several operations read in the kernel of the contraction before it.

    A group holds the contraction and the elementwise operations up to the shared result; without a contraction, the
    operations that are made for the result alone, a whole normalisation if that is what it is. Only results of which
    rows are summed (or their maximum taken) need that. A group is one kernel.
    """

    argument: ClassVar[str] = "smartmem-pin-epilogues"
    example: ClassVar[str] = "residual_sum.mlir"
    dependent_dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "smartmem", "tensor")

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        pin_epilogues(op)
