"""How a kernel uses its threads: along which axes they differ, and whether they race for shared memory.

IREE 3.13 launches kernels with more threads than it distributes work to. Where a tile is not distributed along an axis
(a softmax over [64, 3, 49, 49] with workgroups of 1 x 1 x 64, say), all threads along it run the whole tile, each for
itself and all of them in the same workgroup memory, without a barrier: `sum += x` then counts each x once per subgroup
that happens to interleave. In lockstep, in one subgroup, the result is right; on a device with smaller subgroups it is
wrong, with no subgroup instruction to be seen.
"""

from __future__ import annotations

from collections.abc import Iterable

from smartmem_mlir.iree.shaders import module as spv
from smartmem_mlir.iree.shaders.module import Instruction, SpirvModule

_AXES = (0, 1, 2)
# Instructions whose operands from the third on (after result type and result) are not all ids: how many ids there are
# before literals follow. The rest of the instructions that matter here have ids only.
_LEADING_IDS = {spv.OP_COMPOSITE_EXTRACT: 1, spv.OP_COMPOSITE_INSERT: 2, spv.OP_VECTOR_SHUFFLE: 2}
# Instructions without a result that have an id as first operand: stores, branches, names, decorations and so on.
_WITHOUT_RESULT = frozenset(
    {5, 6, 10, 11, 14, 15, 16, 17, 62, 63, 71, 72, 246, 247, 248, 249, 250, 251, 252, 253, 254, 255, 224, 225, 228}
)


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


def races(module: SpirvModule) -> bool:
    """Whether threads may meet in workgroup memory without a barrier between them.

    They cannot if the address of every access depends on every axis along which there is more than one thread: that is
    how IREE gives each thread a slot of its own. A kernel with a barrier is taken to have all that it needs.
    """
    shared = {
        entry.operands[1]
        for entry in module.instructions
        if entry.opcode == spv.OP_VARIABLE and entry.operands[2] == spv.STORAGE_WORKGROUP
    }
    many = {axis for mode in module.workgroup_sizes for axis in _AXES if mode.operands[2 + axis] > 1}
    if not shared or not many or any(entry.opcode == spv.OP_CONTROL_BARRIER for entry in module.instructions):
        return False
    components = _components(module)
    if components is None:
        return True
    definitions = {
        entry.operands[1]: entry
        for entry in module.instructions
        if entry.opcode not in _WITHOUT_RESULT and len(entry.operands) > 1
    }
    chains = [
        entry
        for entry in module.instructions
        if entry.opcode in (spv.OP_ACCESS_CHAIN, spv.OP_IN_BOUNDS_ACCESS_CHAIN) and entry.operands[2] in shared
    ]
    return any(not many <= _axes_of(chain.operands[3:], components, definitions) for chain in chains)


def _components(module: SpirvModule) -> dict[int, int] | None:
    """Id -> component of `LocalInvocationId` that it holds; None if the vector is used in another way."""
    variable = module.builtins.get(spv.BUILTIN_LOCAL_INVOCATION_ID)
    loads = {
        entry.operands[1]
        for entry in module.instructions
        if entry.opcode == spv.OP_LOAD and entry.operands[2] == variable
    }
    components = {}
    for entry in module.instructions:
        if entry.opcode == spv.OP_COMPOSITE_EXTRACT and entry.operands[2] in loads:
            components[entry.operands[1]] = entry.operands[3]
        elif loads.intersection(_id_operands(entry)):
            return None
    return components


def _axes_of(values: Iterable[int], components: dict[int, int], definitions: dict[int, Instruction]) -> set[int]:
    """The thread axes on which some values depend, through arithmetic; what is loaded from memory has none."""
    axes: set[int] = set()
    pending, seen = list(values), set[int]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in components:
            axes.add(components[value])
        elif value in definitions and definitions[value].opcode != spv.OP_LOAD:
            pending += _id_operands(definitions[value])
    return axes


def _id_operands(entry: Instruction) -> tuple[int, ...]:
    """The ids that an instruction computes its result from, or acts on."""
    if entry.opcode in (spv.OP_CONSTANT, spv.OP_VARIABLE) or entry.opcode < 43:
        # Types, constants, names and modes: literals and types only, apart from OpExtInst.
        return entry.operands[4:] if entry.opcode == spv.OP_EXT_INST else ()
    if entry.opcode in (spv.OP_DECORATE, 72):
        return ()
    if entry.opcode in _WITHOUT_RESULT:
        return entry.operands
    operands = entry.operands[2:]
    return operands[: _LEADING_IDS.get(entry.opcode, len(operands))]
