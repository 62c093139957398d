"""Taking superfluous threads out of kernels, and parting those that meet.

Where all threads along an axis do the same (see `shaders.threads`), the workgroup's extent along it becomes 1. That
changes no result that was right: the threads that remain do what each of those that go would have done. Where threads
meet in workgroup memory (see `shaders.barriers`), barriers are put between them. Both change the results that were
wrong. Nothing else in a module knows: IREE dispatches workgroups, and Vulkan takes their size from the SPIR-V.

A kernel keeps its length, so that nothing else in the `.vmfb` moves: barriers take the place of debug names.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from smartmem_mlir.iree.shaders import module as spv
from smartmem_mlir.iree.shaders.barriers import missing_barriers, races
from smartmem_mlir.iree.shaders.flow import flow_of
from smartmem_mlir.iree.shaders.module import SpirvModule, find_modules
from smartmem_mlir.iree.shaders.slots import Extents, shared_accesses
from smartmem_mlir.iree.shaders.threads import redundant_axes

# Scope Workgroup; AcquireRelease of buffers and of workgroup memory.
_SCOPE_WORKGROUP, _SEMANTICS = 2, 0x8 | 0x40 | 0x100
_NOP = 1 << 16


class Repair(BaseModel):
    """A kernel that was changed.

    Args:
        kernel: Its entry point.
        before: Workgroup size as IREE made it.
        after: Workgroup size now, without superfluous threads.
        barriers: How many barriers were added.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kernel: str
    before: Extents
    after: Extents
    barriers: int = 0


def repair_vmfb(vmfb: Path) -> list[Repair]:
    """Repair every kernel of a module, in place.

    Args:
        vmfb: The module; rewritten if anything was found.
    """
    data = bytearray(vmfb.read_bytes())
    repairs = [repair for module in find_modules(data) if (repair := _repair(data, module)) is not None]
    if repairs:
        vmfb.write_bytes(data)
    return repairs


def _repair(data: bytearray, module: SpirvModule) -> Repair | None:
    if len(module.workgroup_sizes) != 1:
        # Several entry points share their functions; which one uses which axes is not followed.
        return None
    (mode,) = module.workgroup_sizes
    before: Extents = (mode.operands[2], mode.operands[3], mode.operands[4])
    redundant = redundant_axes(module, before)
    x, y, z = (1 if axis in redundant else extent for axis, extent in enumerate(before))
    barriers = _barriers(module, (x, y, z))
    if barriers and not _insert_barriers(data, module, barriers):
        barriers = []
    # By SPIR-V's rules names stand behind the execution modes, which therefore have not moved.
    struct.pack_into("<3I", data, module.offset + 4 * (mode.word + 2), x, y, z)
    if not redundant and not barriers:
        return None
    return Repair(kernel=module.name, before=before, after=(x, y, z), barriers=len(barriers))


def _barriers(module: SpirvModule, extents: Extents) -> list[int]:
    """Where barriers would part threads that meet; empty if none do or barriers cannot help."""
    flow = flow_of(module)
    if flow is None or not races(module, extents):
        return []
    return missing_barriers(flow, shared_accesses(flow, extents)) or []


def _insert_barriers(data: bytearray, module: SpirvModule, positions: Sequence[int]) -> bool:
    """Put barriers in front of some instructions of a kernel, and the constants that they need into it.

    Returns:
        Whether the kernel's debug names were long enough to make room.
    """
    (bound,) = struct.unpack_from("<I", data, module.offset + 12)
    unsigned = next(
        (
            entry.operands[0]
            for entry in module.instructions
            if entry.opcode == spv.OP_TYPE_INT and entry.operands[1:] == (32, 0)
        ),
        None,
    )
    if unsigned is None:
        return False
    scope, semantics = bound, bound + 1
    barrier = [4 << 16 | spv.OP_CONTROL_BARRIER, scope, scope, semantics]
    constants = [
        word
        for result, value in ((scope, _SCOPE_WORKGROUP), (semantics, _SEMANTICS))
        for word in (4 << 16 | spv.OP_CONSTANT, unsigned, result, value)
    ]
    # Barriers order accesses to a buffer among the threads of a workgroup only if no thread may keep its own copy.
    buffers = [
        entry.operands[1]
        for entry in module.instructions
        if entry.opcode == spv.OP_VARIABLE and entry.operands[2] == spv.STORAGE_STORAGE_BUFFER
    ]
    coherent = [word for buffer in buffers for word in (3 << 16 | spv.OP_DECORATE, buffer, spv.DECORATION_COHERENT)]
    words: list[int] = []
    length = 0
    decorated = False
    padding_at = None
    for position, (opcode, operands, _) in enumerate(module.instructions):
        length += 1 + len(operands)
        if opcode in (spv.OP_NAME, spv.OP_MEMBER_NAME):
            continue
        if opcode == spv.OP_DECORATE and not decorated:
            words += coherent
            decorated = True
        if opcode == spv.OP_FUNCTION:
            words += constants
        if position in positions:
            padding_at = len(words) if padding_at is None else padding_at
            words += barrier
        words += [(1 + len(operands)) << 16 | opcode, *operands]
    spare = length - len(words)
    if spare < 0 or padding_at is None or not decorated:
        return False
    words[padding_at:padding_at] = [_NOP] * spare
    struct.pack_into("<I", data, module.offset + 12, bound + 2)
    struct.pack_into(f"<{length}I", data, module.offset + spv.HEADER_BYTES, *words)
    return True
