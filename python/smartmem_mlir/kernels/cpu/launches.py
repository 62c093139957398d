"""Which kernels run in one launch.

Kernels that read the same tensor and do not need each other run side by side: the projections of an attention, the two
branches of a residual block. Small kernels of which one reads what another computes run one after the other in one
workgroup, with what is between them on the stack: the two products of a squeeze-excitation. Large ones of which each
row needs only that row of the others run one after the other in every workgroup, block of rows by block of rows. Each
launch costs the time of hundreds of thousands of multiply-adds once workers wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from math import prod

from mlir import ir

from smartmem_mlir.kernels.cpu.kernel import Kernel
from smartmem_mlir.kernels.cpu.stages import row_stages
from smartmem_mlir.transforms.ir_walk import CONSTANTS, Positions, users
from smartmem_mlir.transforms.view_ops import defining_op, shape_of

MAX_BINDINGS = 16
"""Buffers of one launch: few enough for every device of IREE."""

MAX_SIBLINGS = 4
"""Kernels that run side by side."""

MAX_CHAIN_WORK = 500_000
"""Multiply-adds that one worker should do while the others wait: what two launches cost that need not be."""

MAX_STACK_BYTES = 60 * 1024
"""For the kernels of a launch and what is between those of a chain; IREE's limit is on a whole function."""


class Order(Enum):
    """How the kernels of a launch run."""

    BESIDE = auto()
    """Each in workgroups of its own."""
    AFTER = auto()
    """One after the other, in one workgroup."""
    ALONG = auto()
    """One after the other in every workgroup, on the same rows."""


@dataclass(frozen=True)
class Launch:
    """Kernels that run as one.

    Args:
        kernels: In program order.
        order: How they run.
        position: The operation that stands where they run.
    """

    kernels: tuple[Kernel, ...]
    order: Order
    position: ir.Operation


def form_launches(kernels: Sequence[Kernel], operations: Sequence[ir.Operation]) -> list[Launch]:
    """Puts kernels into launches.

    Args:
        kernels: What is to be run.
        operations: The operations of all functions, in program order.
    """
    place = Positions(operations)
    left = {kernel.op.results[0]: kernel for kernel in sorted(kernels, key=lambda kernel: place.of(kernel.op))}
    launches = []
    while left:
        first = left.pop(next(iter(left)))
        launch = _launch(first, left, place)
        for member in launch.kernels[1:]:
            del left[member.op.results[0]]
        launches.append(launch)
    return launches


def _launch(first: Kernel, left: dict[ir.Value, Kernel], place: Positions) -> Launch:
    """The launch that starts with a kernel."""
    chain = _chain(first, left)
    if len(chain) > 1:
        return Launch(tuple(chain), Order.AFTER, chain[-1].op)
    here = place.of(first.op)
    members = _siblings(first, left, place)
    stages = row_stages(first, left, place, lambda value: _is_movable(value) or _is_before(value, here, place), _fits)
    if len(stages) > len(members):
        return Launch(tuple(stages), Order.ALONG, first.op)
    beside = members if len(members) == 1 else [member.beside(len(members)) for member in members]
    return Launch(tuple(beside), Order.BESIDE, first.op)


def _siblings(first: Kernel, left: dict[ir.Value, Kernel], place: Positions) -> list[Kernel]:
    """Kernels that read a tensor that the first one reads, and nothing that is computed after it."""
    found = [first]
    here = place.of(first.op)
    read = dict.fromkeys(value for value in first.op.operands if not _is_movable(value))
    near = {user.results[0]: user for value in read for user in users(value) if len(user.results)}
    for result, op in sorted(near.items(), key=lambda item: place.of(item[1])):
        if result not in left or len(found) == MAX_SIBLINGS:
            continue
        ready = all(_is_movable(value) or _is_before(value, here, place) for value in op.operands)
        together = [*found, left[result]] if ready else []
        if ready and _fits(together):
            found.append(left[result])
    return found


def _chain(first: Kernel, left: dict[ir.Value, Kernel]) -> list[Kernel]:
    """Small kernels, each of which is all that reads the one before it."""
    found = [first]
    work, stack = first.work, first.stack
    while work <= MAX_CHAIN_WORK and not found[-1].scratch:
        (result,) = found[-1].op.results
        readers = list(users(result))
        kernel = left.get(readers[0].results[0]) if len(readers) == 1 and len(readers[0].results) else None
        if kernel is None or kernel.scratch:
            break
        work += kernel.work
        stack += kernel.stack + 4 * prod(shape_of(result))
        if work > MAX_CHAIN_WORK or stack > MAX_STACK_BYTES or _bindings([*found, kernel]) > MAX_BINDINGS:
            break
        found.append(kernel)
    return found


def _fits(kernels: Sequence[Kernel]) -> bool:
    """Whether one launch can have the kernels."""
    return _bindings(kernels) <= MAX_BINDINGS and sum(kernel.stack for kernel in kernels) <= MAX_STACK_BYTES


def _bindings(kernels: Sequence[Kernel]) -> int:
    made = {result for kernel in kernels for result in kernel.op.results}
    scratch = sum(kernel.scratch > 0 for kernel in kernels)
    return len({value for kernel in kernels for value in kernel.op.operands} | made) + scratch


def _is_movable(value: ir.Value) -> bool:
    op = defining_op(value)
    return op is not None and op.name in CONSTANTS


def _is_before(value: ir.Value, here: int, place: Positions) -> bool:
    owner = defining_op(value)
    return owner is None or 0 <= place.of(owner) < here


def movable_operands(launch: Launch) -> Iterator[ir.Operation]:
    """Operations without operands that must stand in front of the launch."""
    for kernel in launch.kernels:
        for value in kernel.op.operands:
            if _is_movable(value):
                yield value.owner.operation
