"""The numbers that `smartmem inspect` prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, computed_field, model_validator

KernelKind = Literal["compute", "movement", "fill", "extern"]


class Kernel(BaseModel):
    """One dispatch entry point and how often the model calls it.

    Args:
        name: IREE's name of the entry point.
        kind: "movement" if every element that it writes is a copy of one that it reads or a constant; "fill" if it
            writes constants only; "extern" if the body is an object file that nobody can look into; else "compute".
        calls: Call sites; each is one kernel launch per inference.
        read_bytes: Bytes that one call reads, None if they depend on the data.
        written_bytes: Bytes that one call writes, None if they depend on the data.
        scratch_bytes: Memory that a call has for itself, beside what it writes: its workgroups use their part of it
            again and again, so that it stays in their cache.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    kind: KernelKind
    calls: int
    read_bytes: int | None
    written_bytes: int | None
    scratch_bytes: int = 0

    @property
    def moves_data(self) -> bool:
        """Whether it counts as a data-movement kernel: a fill does, it writes without computing."""
        return self.kind in ("movement", "fill")

    @property
    def bytes_per_call(self) -> int:
        """Reads plus writes of one call, as far as they are known."""
        return (self.read_bytes or 0) + (self.written_bytes or 0)


class Copy(BaseModel):
    """Operations on whole tensors outside kernels, which IREE turns into copy and fill commands.

    Args:
        operation: Name of the operation, such as `flow.tensor.update`.
        count: How many of them one inference runs.
        bytes: Reads plus writes of all of them together.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    operation: str
    count: int
    bytes: int


class ImageTraffic(BaseModel):
    """What kernels read and write of images, of one inference; texel by texel a tensor counts once for each access.

    Args:
        tensors: Tensors in images.
        activation_bytes: Bytes of computed tensors that kernels access.
        activation_image_bytes: Those of them that are in images.
        weight_bytes: Bytes of weights that kernels access.
        weight_image_bytes: Those of them that are in images.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tensors: int
    activation_bytes: int
    activation_image_bytes: int
    weight_bytes: int
    weight_image_bytes: int


class FlowSummary(BaseModel):
    """Everything that one inference launches, and what loading the module runs once.

    Args:
        entries: Kernels of the inference, in order of first call.
        copies: Copies and fills of the inference that are not kernels.
        load_entries: Kernels that run once, when the module is loaded (packing of weights, for example).
        load_copies: Copies and fills that run once.
        largest_binding_bytes: Largest tensor that any kernel reads or writes.
        images: What is accessed in images; None where no tensor is one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    entries: tuple[Kernel, ...]
    copies: tuple[Copy, ...]
    load_entries: tuple[Kernel, ...]
    load_copies: tuple[Copy, ...]
    largest_binding_bytes: int
    images: ImageTraffic | None = None

    @model_validator(mode="before")
    @classmethod
    def _recompute(cls, content: Any) -> Any:
        """Sums are written to JSON for its readers and computed again when it is read."""
        if not isinstance(content, dict):
            return content
        return {name: value for name, value in content.items() if name not in cls.model_computed_fields}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def kernels(self) -> int:
        """Kernel launches of one inference."""
        return sum(kernel.calls for kernel in self.entries)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def movement_kernels(self) -> int:
        """Launches that only move data."""
        return sum(kernel.calls for kernel in self.entries if kernel.moves_data)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def movement_bytes(self) -> int:
        """Reads plus writes of the data-movement kernels."""
        return _bytes(kernel for kernel in self.entries if kernel.moves_data)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def total_bytes(self) -> int:
        """Reads plus writes of all kernels."""
        return _bytes(self.entries)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def copy_bytes(self) -> int:
        """Reads plus writes of the copies and fills that are not kernels."""
        return sum(copy.bytes for copy in self.copies)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def unknown_kernels(self) -> int:
        """Launches whose bytes depend on the data; they are missing from the sums above."""
        return sum(kernel.calls for kernel in self.entries if kernel.read_bytes is None or kernel.written_bytes is None)


def _bytes(kernels: Iterable[Kernel]) -> int:
    return sum(kernel.calls * kernel.bytes_per_call for kernel in kernels)
