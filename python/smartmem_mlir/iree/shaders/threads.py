"""How a kernel uses its threads: along which axes they differ, and whether they race for shared memory.

IREE 3.13 launches kernels with more threads than it distributes work to. Where a tile is not distributed along an axis
(a softmax over [64, 3, 49, 49] with workgroups of 1 x 1 x 64, say), all threads along it run the whole tile, each for
itself and all of them in the same workgroup memory, without a barrier: `sum += x` then counts each x once per subgroup
that happens to interleave. In lockstep, in one subgroup, the result is right; on a device with smaller subgroups it is
wrong, with no subgroup instruction to be seen.
"""

from __future__ import annotations

from smartmem_mlir.iree.shaders import module as spv
from smartmem_mlir.iree.shaders.module import SpirvModule

_AXES = (0, 1, 2)


def thread_axes(module: SpirvModule) -> frozenset[int] | None:
    """The axes along which threads can tell themselves apart.

    Returns:
        Components of `LocalInvocationId` that the kernel reads; None if it may tell its threads apart in another way:
        by the global or linear index, by its subgroup, by atomic operations, or by the vector as a whole.
    """
    if module.builtins.keys() & (
        {spv.BUILTIN_GLOBAL_INVOCATION_ID, spv.BUILTIN_LOCAL_INVOCATION_INDEX, spv.BUILTIN_WORKGROUP_SIZE}
        | spv.SUBGROUP_BUILTINS
    ):
        return None
    if any(entry.opcode in spv.ATOMICS or entry.opcode in spv.SUBGROUP_OPERATIONS for entry in module.instructions):
        return None
    components = _components(module)
    return None if components is None else frozenset(components.values())


def redundant_axes(module: SpirvModule, extents: tuple[int, int, int]) -> list[int]:
    """The axes along which all threads do the same, so that one would do."""
    distinct = thread_axes(module)
    if distinct is None:
        return []
    return [axis for axis in _AXES if extents[axis] > 1 and axis not in distinct]


def _components(module: SpirvModule) -> dict[int, int] | None:
    """Id -> component of `LocalInvocationId` that it holds; None if the vector is used in another way."""
    for entry in module.instructions:
        if entry.opcode != spv.OP_COMPOSITE_EXTRACT and module.thread_vectors.intersection(spv.id_operands(entry)):
            return None
    return module.thread_components
