"""What shaders must stay within on a device, and what fills it."""

from __future__ import annotations

from dataclasses import dataclass

CORE_LANES = 128
"""Of `lanes`, those that share registers and start one workgroup's threads: what counts as a core."""


@dataclass(frozen=True)
class CooperativeMatrices:
    """Products of small f16 matrices, summed in f32, that a subgroup computes by one instruction.

    Args:
        rows: Of the left factor and of the sum.
        lanes: Columns of the right factor and of the sum.
        terms: Columns of the left factor, rows of the right one.
        subgroup: Threads of a subgroup.
        emulated: Whether threads compute the products by ordinary instructions: what else a kernel does is then the
            same on any device.
    """

    rows: int
    lanes: int
    terms: int
    subgroup: int
    emulated: bool = False


@dataclass(frozen=True)
class GpuLimits:
    """What a device can hold, and how much it takes to fill it.

    Args:
        invocations: Threads of a workgroup.
        shared_bytes: Workgroup memory.
        workgroups: Workgroups along x and y.
        lanes: f32 multiply-adds of all cores in one cycle.
        half: Whether buffers may hold f16.
        registers: 32-bit registers of one core; 0 where nobody has measured what is gained by using them.
        matrices: Its cooperative matrices, if it has any.
    """

    invocations: int
    shared_bytes: int
    workgroups: tuple[int, int]
    lanes: int
    half: bool = False
    registers: int = 0
    matrices: CooperativeMatrices | None = None

    @property
    def cores(self) -> int:
        """How many workgroups run at once, side by side."""
        return max(1, self.lanes // CORE_LANES)
