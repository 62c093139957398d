"""A launch becomes an executable of ours and a dispatch of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from math import prod

from mlir import ir
from mlir.dialects import arith, scf

from smartmem_mlir.kernels.cpu.kernel import Kernel
from smartmem_mlir.kernels.cpu.lanes import index, scratch
from smartmem_mlir.kernels.cpu.launches import Launch, Order, movable_operands
from smartmem_mlir.kernels.executable import add_executable, dispatch_several
from smartmem_mlir.kernels.groups import without_operands
from smartmem_mlir.transforms.symbols import symbols, unique
from smartmem_mlir.transforms.view_ops import shape_of


class LaunchWriter:
    """Writes launches into a module; equal ones share an executable.

    Args:
        module: The module's block.
    """

    def __init__(self, module: ir.Block) -> None:
        self._module = module
        self._names: dict[object, str] = {}
        self._taken = symbols(module)

    def write(self, launch: Launch) -> None:
        """Replaces the launch's groups."""
        for op in movable_operands(launch):
            # To the front of the function, where nothing can need them sooner.
            op.move_before(launch.position.parent.regions[0].blocks[0].operations[0])
        kernels = launch.kernels
        kept = kernels[-1:] if launch.order is Order.AFTER else kernels
        inside = {kernel.op.results[0]: i for i, kernel in enumerate(kernels)}
        with ir.InsertionPoint(launch.position), ir.Location.fused([kernel.op.location for kernel in kernels]):
            given = [kernel.operands() for kernel in kernels]
            operands = list(dict.fromkeys(value for values in given for value in values if value not in inside))
            place = {value: i for i, value in enumerate(operands)}
            reads = tuple(tuple(place[v] if v in place else -1 - inside[v] for v in values) for values in given)
            key = (launch.order, reads, *((kernel.variant, without_operands(kernel.op)) for kernel in kernels))
            results = [type_ for kernel in kept for type_ in _written_types(kernel)]
            if key not in self._names:
                self._names[key] = unique("_".join(kernel.stem for kernel in kernels), self._taken)
                self._add(self._names[key], launch, reads, [*(value.type for value in operands), *results])
            made = dispatch_several(self._names[key], operands, results)
        for kernel, (result, *_) in zip(kept, _written(kept, made), strict=True):
            kernel.op.results[0].replace_all_uses_with(result)
        for kernel in reversed(kernels):
            kernel.op.erase()

    def _add(self, name: str, launch: Launch, reads: Reads, tensors: Sequence[ir.Type]) -> None:
        kernels = launch.kernels
        kept = kernels[-1:] if launch.order is Order.AFTER else kernels
        count = len(tensors) - sum(len(_written_types(kernel)) for kernel in kept)
        # Behind each kernel's result.
        own = [i > 0 for kernel in kept for i, _ in enumerate(_written_types(kernel))]
        scratch_at = [count + position for position, is_own in enumerate(own) if is_own]
        if len(kernels) == 1:
            add_executable(self._module, name, tensors, kernels[0].workgroups, kernels[0].body, scratch_at)
            return
        write = {Order.BESIDE: _beside, Order.ALONG: _along, Order.AFTER: _after}[launch.order]
        workgroups = [prod(kernel.workgroups) for kernel in kernels]
        total = {Order.BESIDE: sum(workgroups), Order.ALONG: max(workgroups), Order.AFTER: 1}[launch.order]

        def body(buffers: Sequence[ir.Value], ids: Sequence[ir.Value]) -> None:
            write(kernels, reads, buffers[:count], buffers[count:], ids[0])

        add_executable(self._module, name, tensors, (total, 1), body, scratch_at)


Memory = Sequence[ir.Value]
Reads = Sequence[Sequence[int]]
"""What each kernel of a launch reads: the number of an operand of the launch, or -1 - the number of a kernel of it."""


def _beside(kernels: Sequence[Kernel], reads: Reads, given: Memory, results: Memory, number: ir.Value) -> None:
    written = _written(kernels, results)
    memories = [[*(given[i] for i in read), *own] for read, own in zip(reads, written, strict=True)]
    _one_of(kernels, memories, [prod(kernel.workgroups) for kernel in kernels], number)


def _along(kernels: Sequence[Kernel], reads: Reads, given: Memory, results: Memory, number: ir.Value) -> None:
    for kernel, read, result in zip(kernels, reads, results, strict=True):
        # Rows that this workgroup has written, with the same number.
        _workgroup(kernel, [*_inputs(read, given, results), result], number)


def _after(kernels: Sequence[Kernel], reads: Reads, given: Memory, results: Memory, _: ir.Value) -> None:
    memories = [*(scratch(prod(shape_of(kernel.op.results[0]))) for kernel in kernels[:-1]), *results]
    for kernel, read, memory in zip(kernels, reads, memories, strict=True):
        loop = scf.ForOp(index(0), index(prod(kernel.workgroups)), index(1))
        with ir.InsertionPoint(loop.body):
            _workgroup(kernel, [*_inputs(read, given, memories), memory], loop.induction_variable)
            scf.YieldOp([])


def _written_types(kernel: Kernel) -> list[ir.Type]:
    """What a kernel is given to write to: its result, then its scratch memory."""
    result = kernel.op.results[0].type
    return [result, ir.RankedTensorType.get([kernel.scratch], ir.F32Type.get())] if kernel.scratch else [result]


def _written(kernels: Sequence[Kernel], values: Memory) -> list[list[ir.Value]]:
    """Those of the values that each kernel writes to."""
    left = iter(values)
    return [list(islice(left, len(_written_types(kernel)))) for kernel in kernels]


def _inputs(read: Sequence[int], given: Memory, made: Memory) -> list[ir.Value]:
    return [given[i] if i >= 0 else made[-1 - i] for i in read]


def _workgroup(kernel: Kernel, memory: Memory, number: ir.Value) -> None:
    """The workgroup of a kernel with this number, counted along x first."""
    along_x = index(kernel.workgroups[0])
    kernel.body(memory, [arith.remui(number, along_x), arith.divui(number, along_x)])


def _one_of(kernels: Sequence[Kernel], memories: Sequence[Memory], counts: Sequence[int], number: ir.Value) -> None:
    """The workgroup with this number among those of all kernels."""
    write: Callable[[], None] = partial(_workgroup, kernels[0], memories[0], number)
    if len(kernels) == 1:
        write()
        return
    branch = scf.IfOp(arith.cmpi(arith.CmpIPredicate.ult, number, index(counts[0])), has_else=True)
    with ir.InsertionPoint(branch.then_block):
        write()
        scf.YieldOp([])
    with ir.InsertionPoint(branch.else_block):
        _one_of(kernels[1:], memories[1:], counts[1:], arith.subi(number, index(counts[0])))
        scf.YieldOp([])
