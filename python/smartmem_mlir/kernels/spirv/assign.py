"""Which memory each tensor of a module's shaders lives in.

An image's texels are not the bytes of the buffer that IREE knows, so an image must be written by a shader of ours and
read by shaders of ours only. What something else writes or reads can be copied into an image for the shaders that read
it, and weights are copied when the module is loaded. A texel buffer is the buffer's own bytes and asks for nothing.

No tensor's memory changes what another one costs, so each is decided for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mlir import ir

from smartmem_mlir.kernels.spirv.kernel import Kernel
from smartmem_mlir.kernels.spirv.placements import ImageShape, MemoryLimits, Placement
from smartmem_mlir.kernels.spirv.tensors import Tensor, find_tensors
from smartmem_mlir.layouts.memory import Memory, Reason, TensorMemory

Storage = Literal["buffer", "image", "auto"]
"""Buffers; images wherever there can be some; what costs least."""


@dataclass(frozen=True)
class MemoryRates:
    """How fast kernels access a device's memories.

    Args:
        buffer: Bytes a nanosecond that kernels read of buffers, and that they write to any memory.
        image: That they read of images.
        texel_buffer: That they read of texel buffers.
        dispatch_ns: One more kernel, with the barrier in front of it.
        window_image: That convolutions read of images of f16, as `image` if None: the texture path converts what
            threads would convert.
    """

    buffer: float
    image: float
    texel_buffer: float
    dispatch_ns: float
    window_image: float | None = None


@dataclass(frozen=True)
class Choice:
    """One memory that a tensor can have.

    Args:
        placement: Where in it; None for a buffer.
        cost: Of all accesses of one inference, in ns; None where nothing is known.
        copied: Whether shaders read a copy there, which a kernel of its own makes in every inference.
    """

    placement: Placement | None
    cost: float | None
    copied: bool = False

    @property
    def is_handed_on(self) -> bool:
        """Whether it is an image that the writing shader hands to the reading ones."""
        return isinstance(self.placement, ImageShape) and not self.copied

    @property
    def memory(self) -> Memory:
        """Its name."""
        return "buffer" if self.placement is None else self.placement.memory


@dataclass
class Memories:
    """What was decided; tensors that are not named are in buffers.

    Args:
        tensors: Of tensors outside groups.
        weights: Of packed weights, by the result of the kernel that reads them.
        told: Each tensor with its memory and the reason.
    """

    tensors: dict[ir.Value, Choice] = field(default_factory=dict)
    weights: dict[ir.Value, Choice] = field(default_factory=dict)
    told: list[TensorMemory] = field(default_factory=list)


def assign_memories(
    kernels: Sequence[Kernel],
    packed: Sequence[ir.Value | None],
    limits: MemoryLimits,
    rates: MemoryRates | None,
    storage: Storage,
) -> Memories:
    """Decides for every tensor that shaders access.

    Args:
        kernels: All shaders of a module, in program order.
        packed: Each one's packed weight, None where it has none.
        limits: Of images.
        rates: What accesses cost; None where nobody has measured.
        storage: What is asked for.
    """
    memories = Memories()
    if storage == "buffer":
        return memories
    for tensor in find_tensors(kernels, packed):
        reason, detail = tensor.obstacle(limits)
        choices = list(_choices(tensor, reason, limits, rates))
        chosen = _choose(choices, storage, reason)
        if not chosen.is_handed_on and any(each.is_handed_on for each in choices):
            reason, detail = "unmeasured" if rates is None else "cost", ""
        memories.told.append(_tell(tensor, choices, chosen, reason, detail))
        if tensor.packed:
            ((kernel, _),) = tensor.readers
            memories.weights[kernel.op.results[0]] = chosen
        else:
            memories.tensors[tensor.value] = chosen
    return memories


def _tell(tensor: Tensor, choices: Sequence[Choice], chosen: Choice, reason: Reason, detail: str) -> TensorMemory:
    return TensorMemory(
        tensor=tensor.name,
        role="weight" if tensor.is_constant else "activation",
        shape=tensor.shape,
        element="f16" if tensor.is_half else "f32",
        bytes=tensor.bytes,
        memory=chosen.memory,
        extents=() if chosen.placement is None else chosen.placement.extents,
        copied=chosen.copied,
        reason=reason,
        detail=detail,
        costs_ns={each.memory: round(each.cost, 1) for each in choices if each.cost is not None},
    )


def _choices(tensor: Tensor, reason: Reason, limits: MemoryLimits, rates: MemoryRates | None) -> Iterator[Choice]:
    """The memories that a tensor can have: a buffer, an image if there can be one, a texel buffer."""

    def cost(rate: str, more: float = 0.0) -> float | None:
        if rates is None:
            return None
        reading: float = getattr(rates, rate)
        cost = more + tensor.bytes_written / rates.buffer + tensor.bytes_read / reading
        if rate == "image" and tensor.is_half and rates.window_image is not None:
            cost += tensor.bytes_read_by_windows * (1 / rates.window_image - 1 / rates.image)
        return cost

    yield Choice(None, cost("buffer"))
    image = tensor.image(limits) if reason in ("", "extent") else None
    if image is not None:
        yield Choice(image, cost("image"))
    elif rates is not None and not tensor.is_constant and (image := tensor.image(limits, copied=True)) is not None:
        copy = rates.dispatch_ns + 2 * tensor.bytes / rates.buffer
        yield Choice(image, cost("image", copy), copied=True)
    texels = tensor.texels(limits)
    if texels is not None:
        yield Choice(texels, cost("texel_buffer"))


def _choose(choices: Sequence[Choice], storage: Storage, reason: Reason) -> Choice:
    """The buffer is the first choice, and stays it unless another one is better."""
    if storage == "image":
        texels = [each for each in choices if each.memory == "texel_buffer" and reason == "extent"]
        asked = [*(each for each in choices if each.is_handed_on), *texels]
        if asked:
            return asked[0]
    known = [each for each in choices if each.cost is not None]
    return min(known, key=lambda each: each.cost, default=choices[0])  # type: ignore[arg-type, return-value]
