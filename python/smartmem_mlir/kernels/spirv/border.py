"""Constants around a result that a kernel computes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir
from mlir.dialects import arith, scf

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.kernels.spirv import integers
from smartmem_mlir.kernels.spirv.shader import Thread
from smartmem_mlir.kernels.spirv.storage import Binding, Elements, VectorMemory
from smartmem_mlir.kernels.spirv.vectors import WIDTH, splat


def write_border(
    thread: Thread,
    border: Sequence[tuple[Box, float]],
    shape: Sequence[int],
    binding: Binding,
    workgroups: tuple[int, int],
    invocations: int,
) -> None:
    """Fills boxes of a tensor, divided among all threads of the kernel.

    Args:
        thread: The one that runs.
        border: Each box with the number that fills it; of whole vectors where the memory is of vectors.
        shape: The tensor's.
        binding: Its memory.
        workgroups: Workgroups of the kernel along x and y.
        invocations: Threads of each.
    """
    if not border:
        return
    x, y = thread.workgroup
    workgroup = integers.add(integers.scale(y, workgroups[0]), x)
    first = integers.add(integers.scale(workgroup, invocations), thread.local)
    step = integers.constant(prod(workgroups) * invocations)
    unit = WIDTH if isinstance(binding, VectorMemory) else 1
    extents = [*shape[:-1], shape[-1] // unit]
    for box, number in border:
        low = [*box.lo[:-1], box.lo[-1] // unit]
        inside = [*box.extents[:-1], box.extents[-1] // unit]
        loop = scf.ForOp(first, integers.constant(prod(inside)), step)
        with ir.InsertionPoint(loop.body):
            at, rest = integers.constant(0), loop.induction_variable
            for axis in reversed(range(len(shape))):
                digit = integers.remainder(rest, inside[axis]) if axis else rest
                at = integers.add(at, integers.scale(integers.add(digit, low[axis]), prod(extents[axis + 1 :])))
                rest = integers.divide(rest, inside[axis])
            if isinstance(binding, VectorMemory):
                binding.store(binding.place(at), splat(number))
            else:
                assert isinstance(binding, Elements)
                binding.store(at, arith.constant(ir.F32Type.get(), number))
            scf.YieldOp([])
