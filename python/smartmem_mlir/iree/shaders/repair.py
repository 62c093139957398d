"""Taking superfluous threads out of kernels.

Where all threads along an axis do the same (see `shaders.threads`), the workgroup's extent along it becomes 1. That
changes no result that was right: the threads that remain do what each of those that go would have done. It changes the
results that were wrong, and it takes away work. Nothing else in a module knows the workgroup size: IREE dispatches
workgroups, and Vulkan takes their size from the SPIR-V.
"""

from __future__ import annotations

import struct
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from smartmem_mlir.iree.shaders.module import SpirvModule, find_modules
from smartmem_mlir.iree.shaders.threads import redundant_axes

Extents = tuple[int, int, int]


class Repair(BaseModel):
    """A kernel whose superfluous threads were taken away.

    Args:
        kernel: Its entry point.
        before: Workgroup size as IREE made it.
        after: Workgroup size now.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kernel: str
    before: Extents
    after: Extents


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
    if not redundant:
        return None
    x, y, z = (1 if axis in redundant else extent for axis, extent in enumerate(before))
    struct.pack_into("<3I", data, module.offset + 4 * (mode.word + 2), x, y, z)
    return Repair(kernel=module.name, before=before, after=(x, y, z))
