"""What one workgroup computes: workgroups that are many enough and even for any number of workers, and few enough.

The number of workers is not known when a kernel is made. A choice is therefore priced for several: the workgroups that
the busiest worker runs, each with what it costs to start and to bring into cache what it reads.
"""

from __future__ import annotations

from collections.abc import Callable

WORKERS = (1, 2, 4, 8)
"""Numbers of workers that a choice is priced for, each as important as the others."""

RESERVED = 8
"""Workgroups that a worker of IREE takes at a time once there are that many for each; before that it takes one."""

START_WORK = 60_000
"""What starting a workgroup costs, in multiply-adds: some 1.5 microseconds."""

WORK_PER_BYTE = 1.0
"""What it costs to bring a byte from beyond the second-level cache, in multiply-adds."""

CACHE_BYTES = 512 * 1024
"""Of the second-level cache, for what a workgroup reads more than once."""

_PARTS = (*range(1, 17), 20, 24, 28, 32, 40, 48, 56, 64)
"""Numbers of blocks to try along an axis."""


def busiest(workgroups: int, workers: int) -> int:
    """Workgroups that the busiest worker runs, at least, when all of them take equally long."""
    batch = RESERVED if workgroups >= RESERVED * workers else 1
    return min(workgroups, -(-workgroups // (batch * workers)) * batch)


def choose_blocks(units: tuple[int, int], work: Callable[[int, int], float], beside: int = 1) -> tuple[int, int]:
    """How many units along each of two axes one workgroup computes.

    Args:
        units: How many there are.
        work: What a workgroup of so many units costs, in multiply-adds or the time that they take.
        beside: Kernels that run in the same launch, taken to be like this one.

    Returns:
        The cheapest choice; of equally cheap ones that with the fewest workgroups.
    """

    def cost(block: tuple[int, int]) -> tuple[float, int]:
        workgroups = -(-units[0] // block[0]) * -(-units[1] // block[1]) * beside
        return price(workgroups, work(*block)), workgroups

    return min(((first, second) for first in sizes(units[0]) for second in sizes(units[1])), key=cost)


def sizes(count: int) -> list[int]:
    """Sizes of blocks to try."""
    return sorted({-(-count // parts) for parts in _PARTS})


def price(workgroups: int, work: float) -> float:
    """What a launch costs on all workers together, for all numbers of them, in multiply-adds.

    Args:
        workgroups: How many.
        work: Of each.
    """
    return sum(busiest(workgroups, workers) * workers for workers in WORKERS) * (work + START_WORK)
