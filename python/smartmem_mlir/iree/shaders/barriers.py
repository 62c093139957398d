"""Threads that meet in memory without a barrier between them, and where barriers would part them.

IREE 3.13 distributes the operations of a kernel to threads one by one, each along its own loops. A convolution whose
loops run over (h, w, channels) and the bias over (channels, h, w) that follows it give the same element to two
different threads, and the tile between the two is in workgroup memory, or in the result's buffer, without a barrier.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from smartmem_mlir.iree.shaders import module as spv
from smartmem_mlir.iree.shaders.flow import Flow, flow_of
from smartmem_mlir.iree.shaders.module import SpirvModule
from smartmem_mlir.iree.shaders.slots import Extents, SharedAccess, shared_accesses

_SCOPE_WORKGROUP = 2


def races(module: SpirvModule, extents: Extents) -> bool:
    """Whether threads of a workgroup may meet in memory without a barrier between them.

    A kernel with barriers whose addresses or conditions cannot be evaluated is taken to have all that it needs.

    Args:
        module: The kernel.
        extents: Its workgroup size.
    """
    if extents == (1, 1, 1):
        return False
    has_barriers = any(entry.opcode == spv.OP_CONTROL_BARRIER for entry in module.instructions)
    flow = flow_of(module)
    if flow is None:
        shared = any(
            entry.opcode == spv.OP_VARIABLE and entry.operands[2] == spv.STORAGE_WORKGROUP
            for entry in module.instructions
        )
        return shared and not has_barriers
    accesses = shared_accesses(flow, extents)
    if has_barriers and not all(access.exact for access in accesses):
        return False
    return any(access.meets(access) for access in accesses) or bool(conflicts(flow, accesses, present_barriers(flow)))


def present_barriers(flow: Flow) -> frozenset[int]:
    """Positions of the barriers for the whole workgroup that a kernel has."""
    return frozenset(
        position
        for position, entry in enumerate(flow.module.instructions)
        if entry.opcode == spv.OP_CONTROL_BARRIER
        and flow.module.definitions[entry.operands[0]].operands[2:] == (_SCOPE_WORKGROUP,)
    )


def conflicts(flow: Flow, accesses: Sequence[SharedAccess], barriers: Iterable[int]) -> list[int]:
    """The accesses that may meet an earlier one without a barrier in between, as indices of `accesses`.

    Args:
        flow: The kernel.
        accesses: All its accesses to shared memory, in order.
        barriers: Positions of instructions that are barriers, or that have one in front of them.
    """
    barriers = frozenset(barriers)
    at = {access.position: index for index, access in enumerate(accesses)}
    enemies = [
        sum(1 << other for other, earlier in enumerate(accesses) if earlier.meets(access)) for access in accesses
    ]
    events = {
        label: [position for position in range(block.start, block.last + 1) if position in barriers or position in at]
        for label, block in flow.blocks.items()
    }
    # What may have happened since the last barrier, as bits, in front of each block.
    reaching = dict.fromkeys(flow.blocks, 0)
    found: set[int] = set()
    pending = list(flow.blocks)
    while pending:
        label = pending.pop(0)
        state = reaching[label]
        for position in events[label]:
            if position in barriers:
                state = 0
            if position in at:
                if state & enemies[at[position]]:
                    found.add(at[position])
                state |= 1 << at[position]
        for successor in flow.blocks[label].successors:
            if state & ~reaching[successor]:
                reaching[successor] |= state
                pending.append(successor)
    return sorted(found)


def missing_barriers(flow: Flow, accesses: Sequence[SharedAccess]) -> list[int] | None:
    """Positions of instructions that need a barrier in front of them.

    Each barrier goes where it is passed least often, and all threads pass it: at the end of a block outside the loops
    around the access, if that parts all that meets there.

    Args:
        flow: The kernel.
        accesses: All its accesses to shared memory, in order.

    Returns:
        The positions, in order; None if barriers cannot help, because threads part ways around the access or one store
        lets two threads write the same slot.
    """
    if any(access.meets(access) for access in accesses):
        return None
    present, added = present_barriers(flow), set[int]()
    while found := conflicts(flow, accesses, present | added):
        index = found[0]
        position = accesses[index].position
        home = flow.home(position)
        above = flow.dominators[home]
        places = [(flow.depths[home], 0, position)] if home not in flow.divergent else []
        places += [
            (flow.depths[label], len(above) - len(flow.dominators[label]), flow.blocks[label].end)
            for label in above - {home} - flow.divergent
        ]
        helps = (
            place for *_, place in sorted(places) if index not in conflicts(flow, accesses, present | added | {place})
        )
        best = next(helps, None)
        if best is None:
            return None
        added.add(best)
    return sorted(added)
