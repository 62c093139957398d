"""Time of one inference by a roofline: what a GPU could do at best with the kernels as they are compiled.

A kernel takes as long as the slowest of its arithmetic, of what its threads ask memory for, and of reading and writing
each element once from global memory; before it begins, the device needs its launch time. What threads ask of images
comes at the rate of images, which is that of the texture cache; what they ask of buffers comes at the rate of buffers,
as if no cache helped. That is one end; the assumption "once" is the other: every element comes from global memory once
and all else from caches. Of kernels whose code is not made yet (IREE's, until its back end runs) nothing else is known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from smartmem_mlir.iree.flow.work import KernelWork, ModelWork
from smartmem_mlir.targets.description import Roofline

Assumption: TypeAlias = Literal["asked", "once"]
Limit: TypeAlias = Literal["launch", "arithmetic", "images", "buffers", "global memory"]


@dataclass(frozen=True)
class Prediction:
    """Time of one inference.

    Args:
        ms: In all.
        share: Of it, by what limits: the launches, and for each kernel what takes longest.
    """

    ms: float
    share: dict[str, float]


def predict(work: ModelWork, device: Roofline, assumption: Assumption = "asked") -> Prediction:
    """The time of one inference."""
    spent: defaultdict[Limit, float] = defaultdict(float)
    for kernel in work.kernels:
        limit, ns = kernel_limit(kernel, device, assumption)
        spent[limit] += kernel.calls * ns
        spent["launch"] += kernel.calls * device.kernel_launch_ns
    spent["launch"] += work.copies * device.kernel_launch_ns
    spent["global memory"] += work.copy_bytes / device.buffer_bytes_per_ns
    total = sum(spent.values())
    return Prediction(total / 1e6, {limit: ns / total for limit, ns in spent.items() if ns})


def kernel_limit(kernel: KernelWork, device: Roofline, assumption: Assumption = "asked") -> tuple[Limit, float]:
    """What takes longest in one launch, and its nanoseconds, the launch itself not counted."""
    return max(_times(kernel, device, assumption), key=lambda pair: pair[1])


def _times(kernel: KernelWork, device: Roofline, assumption: Assumption) -> Iterator[tuple[Limit, float]]:
    yield (
        "arithmetic",
        sum(
            count / (device.f16_operations_per_ns if bits <= 16 else device.f32_operations_per_ns)
            for bits, count in kernel.operations.items()
        ),
    )
    yield "global memory", kernel.least_bytes / device.buffer_bytes_per_ns
    if kernel.issued_buffer_bytes is not None and assumption == "asked":
        buffers = kernel.issued_buffer_bytes / device.buffer_bytes_per_ns
        images = kernel.issued_image_bytes / device.image_bytes_per_ns
        yield "images" if images >= buffers else "buffers", images + buffers
